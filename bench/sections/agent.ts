/** What an agent costs: alone, beside an Envoy, shared, and while configuration and DNS pass through it. */
import { join } from "node:path";
import { measureAgentStart, measureMetricsMerge, measureSharedAgent } from "../agent-envoy.ts";
import { measureAgentStreams } from "../agent-streams.ts";
import { type Figure, figure } from "./figures.ts";

const AGENT = [join(import.meta.dirname, "../../bin/pilot-agent")];
const SHARED_BY = 10;

/** Shared agents need root; without it they are left out. */
export async function agentFigures(): Promise<readonly Figure[]> {
  const start = await measureAgentStart(AGENT);
  const streams = await measureAgentStreams(AGENT);
  const merge = await measureMetricsMerge(AGENT);
  const shared = process.getuid?.() === 0 ? await measureSharedAgent(AGENT, SHARED_BY) : undefined;
  return [
    figure({ what: "agent: start to ready, Envoy included", value: start.readyMs, unit: "ms", digits: 0, most: 670 }),
    figure({ what: "agent: private memory beside one Envoy", value: start.restMegabytes, unit: "MB", most: 24 }),
    figure({ what: "  after scrapes", value: start.scrapedMegabytes, unit: "MB" }),
    figure({
      what: `  of one that serves ${SHARED_BY}, for each`,
      value: shared?.megabytesPerWorkload ?? Number.NaN,
      unit: "MB",
      most: 12,
    }),
    {
      what: "agent: DNS, cached names",
      measured: `${Math.round(streams.dns.perSecond)} /s`,
      aim: "at least 53000 /s",
      reached: streams.dns.perSecond >= 53_000,
    },
    figure({ what: "  half of the answers", value: streams.dns.p50Ms, unit: "ms", most: 1.6 }),
    figure({ what: "  99 of 100", value: streams.dns.p99Ms, unit: "ms" }),
    figure({ what: "agent: 10 MB of configuration to Envoy", value: streams.push.p50Ms, unit: "ms" }),
    figure({ what: "  CPU", value: streams.push.cpuMs, unit: "ms" }),
    figure({ what: `agent: scrape of ${merge.lines} lines`, value: merge.ms, unit: "ms", digits: 0 }),
    figure({ what: "  private memory at its peak", value: merge.peakMegabytes, unit: "MB" }),
  ];
}
