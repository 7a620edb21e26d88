/** What a mesh on one machine takes. */
import { measureCalls, measureMeshStart, measureSharedMesh } from "../mesh.ts";
import { type Figure, figure } from "./figures.ts";

/** A call may take as long as under real istiod, give or take what a run differs from the next. */
const TOLERANCE = 1.1;

/** `istiod` is the program of a real one to compare with, if there is one. */
export async function meshFigures(istiod: string | undefined): Promise<readonly Figure[]> {
  const start = await measureMeshStart(10);
  const shared = await measureSharedMesh(50);
  const { direct, mizzen, istio } = await measureCalls(istiod);
  return [
    figure({ what: `mesh: ${start.workloads} workloads ready, warm`, value: start.readySeconds, unit: "s", most: 10 }),
    figure({ what: "mesh: up of one changed workload", value: start.changeSeconds, unit: "s", most: 2 }),
    figure({
      what: `mesh: ${shared.workloads} workloads with one agent, ready`,
      value: shared.readySeconds,
      unit: "s",
    }),
    figure({ what: "  private memory of the agent, each", value: shared.agentMegabytes, unit: "MB", most: 12 }),
    figure({ what: "  with control plane and runner", value: shared.allMegabytes, unit: "MB" }),
    figure({ what: "mesh: call without a mesh, half of them", value: direct.p50Ms, unit: "ms", digits: 2 }),
    ...callFigures("through two sidecars", mizzen, istio),
    ...(istio === undefined ? [] : callFigures("the same under real istiod", istio, undefined)),
  ];
}

type Calls = Awaited<ReturnType<typeof measureCalls>>["mizzen"];

function callFigures(what: string, calls: Calls, other: Calls | undefined): readonly Figure[] {
  const most = (value: number | undefined) => (value === undefined ? undefined : value * TOLERANCE);
  return [
    figure({
      what: `mesh: ${what}, half of them`,
      value: calls.p50Ms,
      unit: "ms",
      digits: 2,
      most: most(other?.p50Ms),
    }),
    figure({ what: "  99 of 100", value: calls.p99Ms, unit: "ms", digits: 2, most: most(other?.p99Ms) }),
    figure({
      what: "  CPU of both Envoys for 1000",
      value: calls.cpuMs,
      unit: "ms",
      digits: 0,
      most: most(other?.cpuMs),
    }),
  ];
}
