/** What an agent costs: alone, beside an Envoy, shared, and while configuration, DNS and certificates pass through it. */
import { join } from "node:path";
import {
  type AgentStartFigures,
  measureAgentStart,
  measureHeldMs,
  measureMetricsMerge,
  measureSharedAgent,
} from "../agent-envoy.ts";
import { measureAgentStreams } from "../agent-streams.ts";
import { median } from "../percentile.ts";
import { measureSigning } from "../signing.ts";
import { type Figure, type FigureInput, figure } from "./figures.ts";

/** A real pilot-agent to compare with. */
export interface OtherAgent {
  readonly program: string;
  /** The template of its bootstrap, which its image has in a place of its own. */
  readonly bootstrapTemplate: string;
}

interface Start extends AgentStartFigures {
  readonly heldMs: number;
}
interface Load {
  readonly streams: Awaited<ReturnType<typeof measureAgentStreams>>;
  readonly merge: Awaited<ReturnType<typeof measureMetricsMerge>>;
}

interface Row<T> extends Omit<FigureInput, "value" | "theirs"> {
  readonly of: (measured: T) => number;
}

const AGENT = [join(import.meta.dirname, "../../bin/pilot-agent")];
const SHARED_BY = 10;
const REQUESTS_PER_SECOND = 100;
/** Agents take turns, so that what else the machine does meets both. */
const STARTS = 7;
const LOADS = 3;

const START_ROWS: readonly Row<Start>[] = [
  { what: "agent: start to ready, Envoy included", of: (start) => start.readyMs, unit: "ms", digits: 0, most: 670 },
  { what: "  until its `wait` returns", of: (start) => start.heldMs, unit: "ms", digits: 0, most: 670 },
  { what: "agent: private memory beside one Envoy", of: (start) => start.restMegabytes, unit: "MB", most: 24 },
  { what: "  after scrapes", of: (start) => start.scrapedMegabytes, unit: "MB" },
];

const LOAD_ROWS: readonly Row<Load>[] = [
  {
    what: "agent: private memory after configuration and DNS",
    of: ({ streams }) => streams.loadedMegabytes,
    unit: "MB",
  },
  {
    what: "agent: DNS, cached names",
    of: ({ streams }) => streams.dns.perSecond,
    unit: "/s",
    digits: 0,
    least: 53_000,
  },
  { what: "  half of the answers", of: ({ streams }) => streams.dns.p50Ms, unit: "ms", most: 1.6 },
  { what: "  99 of 100", of: ({ streams }) => streams.dns.p99Ms, unit: "ms" },
  { what: "  CPU of each", of: ({ streams }) => streams.dns.cpuUsEach, unit: "us" },
  { what: "agent: 10 MB of configuration to Envoy", of: ({ streams }) => streams.push.p50Ms, unit: "ms" },
  { what: "  CPU", of: ({ streams }) => streams.push.cpuMs, unit: "ms" },
  { what: "agent: scrape of 100000 lines", of: ({ merge }) => merge.ms, unit: "ms", digits: 0 },
  { what: "  CPU", of: ({ merge }) => merge.cpuMs, unit: "ms" },
  { what: "  private memory at its peak", of: ({ merge }) => merge.peakMegabytes, unit: "MB" },
];

/** Shared agents need root; without it they are left out. */
export async function agentFigures(other: OtherAgent | undefined): Promise<readonly Figure[]> {
  const ours = new Series(AGENT, {});
  const theirs = other && new Series([other.program], { ISTIO_BOOTSTRAP: other.bootstrapTemplate });
  for (let i = 0; i < STARTS; i++) for (const series of [ours, theirs]) await series?.start();
  for (let i = 0; i < LOADS; i++) for (const series of [ours, theirs]) await series?.load();
  return [
    ...compared(START_ROWS, ours.starts, theirs?.starts),
    ...compared(LOAD_ROWS, ours.loads, theirs?.loads),
    ...(await sharedFigures()),
    ...(await signingFigures()),
  ];
}

function compared<T>(rows: readonly Row<T>[], ours: readonly T[], theirs: readonly T[] | undefined): Figure[] {
  return rows.map(({ of, ...row }) =>
    figure({ ...row, value: median(ours.map(of)), theirs: theirs && median(theirs.map(of)) }),
  );
}

async function sharedFigures(): Promise<Figure[]> {
  const isRoot = process.getuid?.() === 0;
  const memory = async (workloads: number) =>
    isRoot ? (await measureSharedAgent(AGENT, workloads)).megabytesPerWorkload : Number.NaN;
  return [
    figure({ what: "agent: private memory of one that serves 1", value: await memory(1), unit: "MB" }),
    figure({
      what: `  of one that serves ${SHARED_BY}, for each`,
      value: await memory(SHARED_BY),
      unit: "MB",
      most: 12,
    }),
  ];
}

async function signingFigures(): Promise<Figure[]> {
  const { perSecond, p50Ms, p99Ms, cpuMs } = await measureSigning(REQUESTS_PER_SECOND);
  return [
    figure({
      what: `CA: certificates, asked for ${REQUESTS_PER_SECOND} times a second`,
      value: perSecond,
      unit: "/s",
      digits: 0,
      least: 0.95 * REQUESTS_PER_SECOND,
    }),
    figure({ what: "  half of the answers", value: p50Ms, unit: "ms" }),
    figure({ what: "  99 of 100", value: p99Ms, unit: "ms" }),
    figure({ what: "  CPU of each", value: cpuMs, unit: "ms" }),
  ];
}

/** Repeated measurements of one agent. */
class Series {
  readonly starts: Start[] = [];
  readonly loads: Load[] = [];
  readonly #command: readonly string[];
  readonly #env: Readonly<Record<string, string>>;

  constructor(command: readonly string[], env: Readonly<Record<string, string>>) {
    this.#command = command;
    this.#env = env;
  }

  async start(): Promise<void> {
    const heldMs = await measureHeldMs(this.#command, this.#env);
    this.starts.push({ heldMs, ...(await measureAgentStart(this.#command, this.#env)) });
  }

  async load(): Promise<void> {
    const streams = await measureAgentStreams(this.#command);
    this.loads.push({ streams, merge: await measureMetricsMerge(this.#command) });
  }
}
