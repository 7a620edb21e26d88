/** What a control plane with many sidecars costs, beside what Istio needed for the same. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Callers } from "../callers.ts";
import { ControlPlaneProcess, type PlaneOptions } from "../control-plane-process.ts";
import { type Figures, runLoad } from "../load.ts";
import { MeshFolder, type MeshShape } from "../mesh-folder.ts";
import { ISTIO_50_X_500 } from "../recorded.ts";
import { refereed } from "../referee.ts";
import { figuresTable } from "../table.ts";
import { type Figure, figure } from "./figures.ts";

const ROOT = join(import.meta.dirname, "../..");
/** As long as the other program waits for a push to be over. */
const SETTLE_MS = 1_500;

export interface ControlPlaneRun {
  readonly shape: MeshShape;
  /** Over TLS, with tokens. */
  readonly isSecure: boolean;
  readonly rounds: number;
  /** Another program that measures the same, where it exists. */
  readonly program: string;
  /** A real istiod, to be measured by that program in the same run. */
  readonly istiod?: string | undefined;
}

interface Target {
  readonly mesh: MeshFolder;
  readonly config: string;
  readonly controlPlane: ControlPlaneProcess;
}

/** Prints the figures beside each other; answers with ours beside the aims. */
export async function controlPlaneFigures(run: ControlPlaneRun): Promise<readonly Figure[]> {
  const { shape, isSecure, rounds, program, istiod } = run;
  const { proxies, services, own: isOwn, namespaces = 1, routes } = shape;
  const compares = !isSecure && proxies === 50 && services === 500 && !isOwn && routes === undefined;
  // The other program knows neither.
  const isRefereed = existsSync(program) && namespaces === 1 && routes === undefined;
  using callers = isSecure ? await Callers.start() : undefined;
  const how = { shape, callers };
  const ours = await measured(how, (target) => runLoad({ shape, rounds, settleMs: SETTLE_MS, ...target }));
  const columns: [string, Figures][] = [...(compares ? [["Istio 1.29.6", ISTIO_50_X_500] as const] : [])].map(
    ([title, figures]) => [title, figures],
  );
  columns.push(["Mizzen", ours]);
  if (isRefereed) {
    const byOther = (target: Target) => refereed({ program, modules: ROOT }, { shape, rounds, ...target });
    columns.push(["Mizzen, by xds-load", await measured(how, byOther)]);
    if (istiod !== undefined) columns.push(["istiod here, by xds-load", await measured({ ...how, istiod }, byOther)]);
  }
  const own = isOwn ? `, every two proxies behind a service of their own, in ${namespaces} namespaces` : "";
  const gateway = routes === undefined ? "" : `, routers with ${routes} virtual services`;
  const tls = isSecure ? ", over TLS" : "";
  console.log(`${proxies} proxies, ${services} services${own}${gateway}${tls}\n\n${figuresTable(columns)}\n`);
  if (!existsSync(program)) console.log(`not measured by xds-load: ${program} does not exist\n`);
  return aims(ours, { istio: compares ? ISTIO_50_X_500 : undefined, isGateway: routes !== undefined });
}

/** Each program gets a fresh mesh and a fresh control plane. */
async function measured(
  { shape, ...options }: { readonly shape: MeshShape } & PlaneOptions,
  measure: (target: Target) => Promise<Figures>,
): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-bench-"));
  try {
    const config = join(folder, "config");
    const mesh = new MeshFolder(config, shape);
    mesh.prepare();
    await using controlPlane = await ControlPlaneProcess.start(folder, config, options);
    return await measure({ mesh, config, controlPlane });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A fifth of Istio's connecting, a tenth of its changes, half of its memory. */
function aims(
  ours: Figures,
  { istio, isGateway }: { readonly istio: Figures | undefined; readonly isGateway: boolean },
): readonly Figure[] {
  const part = (value: number | undefined, share: number) => (value === undefined ? undefined : value * share);
  const change = (what: string, name: "endpoint" | "route" | "service", mostMs: number | undefined) => [
    figure({ what: `control plane: ${what}, 99 of 100`, value: ours[name].p99Ms, unit: "ms", most: mostMs }),
    figure({ what: "  CPU", value: ours[name].cpuMs, unit: "ms", most: part(istio?.[name].cpuMs, 0.1) }),
  ];
  return [
    figure({
      what: "control plane: all proxies in sync",
      value: ours.connectSeconds,
      unit: "s",
      digits: 2,
      most: part(istio?.connectSeconds, 0.2),
    }),
    figure({
      what: "  CPU",
      value: ours.connectCpuSeconds,
      unit: "s",
      digits: 2,
      most: part(istio?.connectCpuSeconds, 0.2),
    }),
    ...change("endpoint change", "endpoint", istio === undefined ? undefined : 50),
    ...change("route change", "route", isGateway ? 100 : part(istio?.route.p99Ms, 0.1)),
    ...change("new service", "service", part(istio?.service.p99Ms, 0.1)),
    figure({
      what: "control plane: private memory",
      value: ours.privateMegabytes,
      unit: "MB",
      most: part(istio?.privateMegabytes, 0.5),
    }),
    ...[
      { what: "control plane: delay of the event loop, 99 of 100", value: ours.loopDelayMs },
      { what: "  with 100 endpoint changes a second", value: ours.churn?.loopDelayMs },
    ].map(({ what, value = Number.NaN }) => figure({ what, value, unit: "ms", most: 50 })),
  ];
}
