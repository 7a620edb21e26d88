/** What injection costs. */
import { measureInjection } from "../injection.ts";
import { type Figure, figure } from "./figures.ts";

const LOAD = { perSecond: 100, seconds: 10 };

export async function injectionFigures(): Promise<readonly Figure[]> {
  const { p50Ms, p99Ms, cpuMsEach } = await measureInjection(LOAD);
  return [
    figure({ what: `injection: ${LOAD.perSecond} pods a second, p50`, value: p50Ms, unit: "ms" }),
    figure({ what: "  p99", value: p99Ms, unit: "ms", most: 20 }),
    figure({ what: "  CPU of each, client included", value: cpuMsEach, unit: "ms" }),
  ];
}
