/** What a control plane in Kubernetes costs. */
import { NO_KUBERNETES } from "../../test/support/kubernetes/api-server.ts";
import { measureCluster } from "../kubernetes.ts";
import { type Figure, figure } from "./figures.ts";

const SHAPE = { services: 1_000, podsOfService: 5, customObjects: 2_000, proxies: 1_000, seenServices: 20, rounds: 60 };

export async function kubernetesFigures(): Promise<readonly Figure[]> {
  if (NO_KUBERNETES !== undefined) {
    console.log(`kubernetes: not measured, ${NO_KUBERNETES}\n`);
    return [];
  }
  const figures = await measureCluster(SHAPE);
  const objects = `${SHAPE.services * SHAPE.podsOfService} pods, ${SHAPE.services} services, ${SHAPE.customObjects} objects`;
  return [
    figure({ what: `kubernetes: start with ${objects}`, value: figures.startSeconds, unit: "s", most: 10 }),
    figure({ what: "  CPU", value: figures.startCpuSeconds, unit: "s" }),
    figure({ what: "  private memory", value: figures.privateMegabytes, unit: "MB", most: 300 }),
    figure({
      what: `kubernetes: EndpointSlice to ${SHAPE.proxies} proxies, p50`,
      value: figures.sliceP50Ms,
      unit: "ms",
    }),
    figure({ what: "  p99", value: figures.sliceP99Ms, unit: "ms", most: 100 }),
    figure({ what: "  CPU", value: figures.sliceCpuMs, unit: "ms" }),
  ];
}
