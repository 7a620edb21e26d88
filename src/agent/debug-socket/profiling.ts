/**
 * `/debug/pprof/`: what the agent does and holds, under the paths that Istio's agent has. Profiles are in the formats of
 * V8, which the developer tools of Chrome open: `.cpuprofile`, `.heapprofile` and `.heapsnapshot`.
 */
import { readFile } from "node:fs/promises";
import { Session } from "node:inspector/promises";
import type { Readable } from "node:stream";
import { getHeapSnapshot } from "node:v8";
import { sleep } from "#lib/async/sleep.ts";

export interface Page {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

/** How long to measure, and who waits for it. */
interface Measurement {
  readonly query: string;
  /** Aborted when the caller is gone. */
  readonly signal: AbortSignal;
}

type Profile = (measurement: Measurement) => Page | Promise<Page>;

const DEFAULT_SECONDS = 30;
const MAX_SECONDS = 600;

const INDEX = `<html><head><title>/debug/pprof/</title></head><body>
<ul>
<li><a href="profile?seconds=${DEFAULT_SECONDS}">profile</a>: CPU time by function; ?seconds=N says how long</li>
<li><a href="allocs?seconds=${DEFAULT_SECONDS}">allocs</a>: memory taken meanwhile, by function; ?seconds=N</li>
<li><a href="heap">heap</a>: everything in memory; the agent stands still while it is taken</li>
<li><a href="cmdline">cmdline</a>: the command line</li>
</ul>
Open them in Chrome's developer tools: Performance for profile, Memory for the others.
</body></html>
`;

const PROFILES: Readonly<Record<string, Profile>> = {
  "": () => ({ status: 200, headers: { "content-type": "text/html; charset=utf-8" }, body: INDEX }),
  cmdline: async () => ({ status: 200, body: await readFile("/proc/self/cmdline", "utf8") }),
  profile: cpuProfile,
  allocs: allocations,
  heap: () => file("heap.heapsnapshot", getHeapSnapshot()),
};

/** The page of a path below `/debug/pprof/`; undefined for any other path. */
export async function profilePage(path: string, query: string, signal: AbortSignal): Promise<Page | undefined> {
  const name = /^\/debug\/pprof(?:\/|$)(.*)$/.exec(path)?.[1];
  if (name === undefined || !Object.hasOwn(PROFILES, name)) return undefined;
  return PROFILES[name]?.({ query, signal });
}

async function cpuProfile(measurement: Measurement): Promise<Page> {
  return measured(measurement, async (session, wait) => {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await wait();
    const { profile } = await session.post("Profiler.stop");
    return file("agent.cpuprofile", JSON.stringify(profile));
  });
}

async function allocations(measurement: Measurement): Promise<Page> {
  return measured(measurement, async (session, wait) => {
    await session.post("HeapProfiler.startSampling");
    await wait();
    const { profile } = await session.post("HeapProfiler.stopSampling");
    return file("agent.heapprofile", JSON.stringify(profile));
  });
}

/** Measures as long as the caller asks for, or until it is gone. */
async function measured(
  { query, signal }: Measurement,
  measure: (session: Session, wait: () => Promise<void>) => Promise<Page>,
): Promise<Page> {
  const text = new URLSearchParams(query).get("seconds") ?? String(DEFAULT_SECONDS);
  const seconds = Number(text);
  if (!(seconds > 0 && seconds <= MAX_SECONDS))
    return { status: 400, body: `seconds must be a number up to ${MAX_SECONDS}, not "${text}"\n` };
  const session = new Session();
  session.connect();
  try {
    return await measure(session, async () => {
      await sleep(seconds * 1000, signal);
    });
  } finally {
    session.disconnect();
  }
}

function file(name: string, body: string | Readable): Page {
  return {
    status: 200,
    headers: { "content-type": "application/octet-stream", "content-disposition": `attachment; filename="${name}"` },
    body,
  };
}
