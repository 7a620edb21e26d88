/** One workload of an agent that serves several: started, watched, started again when it ends, until it is not wanted. */
import { closeSync, openSync, writeSync } from "node:fs";
import { chown, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { makeFolder } from "#lib/files/make-folder.ts";
import { createLogger, type Logger } from "#lib/log/log.ts";
import { sparing, type WriteLine } from "#lib/log/log-writers.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { runAgent } from "../agent.ts";
import { parseAgentConfig } from "../agent-config.ts";
import type { Place, PlaceSockets } from "../place.ts";
import { withInsideListener } from "./inside-listener.ts";
import { isForWorkload } from "./readable-files.ts";
import { requestSockets } from "./request-sockets.ts";
import { tunnelThrough } from "./tunnel.ts";
import type { WorkloadFile } from "./workload-file.ts";

export interface WorkloadRunInput {
  readonly name: string;
  readonly workload: WorkloadFile;
  /** A private folder with a short path, for this workload alone: paths of sockets must be short. */
  readonly shortFolder: string;
  /** The agent's own program. */
  readonly program: readonly string[];
  readonly log: Logger;
  readonly stop: AbortSignal;
  readonly hurry: AbortSignal;
  /** Called with each change of state. */
  readonly report: (state: WorkloadState) => void;
}

export interface WorkloadState {
  readonly state: "starting" | "ended" | "failed" | "stopped";
  readonly restarts: number;
  /** Why it is not running. */
  readonly reason?: string;
}

const INSIDE_SOCKET = "./etc/istio/proxy/INSIDE";
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
/** Having run that long, it has not failed at its start. */
const SETTLED_MS = 60_000;

/** Resolves when the workload is not wanted any more and gone. */
export async function runWorkload(input: WorkloadRunInput): Promise<void> {
  const { stop, report, log, name } = input;
  const backoff = new Backoff({ initialMs: FIRST_PAUSE_MS, maxMs: MAX_PAUSE_MS });
  for (let restarts = 0; !stop.aborted; restarts++) {
    const startedAt = Date.now();
    report({ state: "starting", restarts });
    try {
      const status = await runOnce(input);
      if (!stop.aborted) report({ state: "ended", restarts, reason: `Envoy ended with status ${status}` });
    } catch (thrown) {
      // The others are not concerned.
      log.error(`Workload ${name} failed: ${errorText(thrown)}`);
      report({ state: "failed", restarts, reason: errorText(thrown) });
    }
    if (Date.now() - startedAt > SETTLED_MS) backoff.reset();
    await sleep(backoff.next(), stop);
  }
  report({ state: "stopped", restarts: 0 });
}

async function runOnce(input: WorkloadRunInput): Promise<number> {
  const { workload, stop, hurry } = input;
  const { config, problems, warnings } = parseAgentConfig(workload.env);
  if (problems.length > 0) throw new MeshError("ENVIRONMENT_INVALID", problems.join("; "));
  const file = workload.log === "" ? undefined : openLog(workload.log);
  const output = file?.descriptor;
  try {
    if (file !== undefined && process.getuid?.() === 0) await chown(workload.log, workload.user, workload.user);
    const log = file === undefined ? input.log.scope(input.name) : createLogger({ write: file.write });
    for (const warning of warnings) log.warn(warning);
    const dns = config.dns.capture || config.dns.atGateway;
    const place = await placeOf(input, { dnsAddress: dns ? config.dns.address : undefined, output });
    const { flags, env } = workload;
    const agent = { flags, config, env, log, place, startedAt: Date.now(), reload: new EventTarget(), stop, hurry };
    return await runAgent(agent).finally(() => closeSockets(place.sockets));
  } finally {
    file?.close();
  }
}

/** An agent that fails at its start has not come to use all of its sockets; the next one needs their ports. */
function closeSockets(sockets: PlaceSockets | undefined): void {
  sockets?.status?.close();
  for (const { udp, tcp } of sockets?.dns.values() ?? []) {
    tcp.close();
    try {
      udp.close();
    } catch {
      // The agent has closed it.
    }
  }
}

interface OpenLog {
  /** Shared with Envoy. */
  readonly descriptor: number;
  readonly write: WriteLine;
  close(): void;
}

/** Lines that come after the end are dropped: the number of the descriptor may be that of another workload's file by then. */
export function openLog(path: string): OpenLog {
  const descriptor = openSync(path, "a", 0o644);
  let open = true;
  const write = sparing((line) => void writeSync(descriptor, line));
  return {
    descriptor,
    write: (line) => {
      if (open) write(line);
    },
    close: () => {
      open = false;
      closeSync(descriptor);
    },
  };
}

interface PlaceInput {
  readonly dnsAddress: string | undefined;
  readonly output: number | undefined;
}

async function placeOf(
  { workload, shortFolder, program }: WorkloadRunInput,
  { dnsAddress, output }: PlaceInput,
): Promise<Place> {
  const { enter, statusPort, user } = workload;
  const folder = join(shortFolder, "w");
  makeFolder(shortFolder, 0o711);
  await rm(folder, { force: true });
  await symlink(workload.folder, folder);
  const { sockets, interfaces, resolvConf } = await requestSockets({
    enter,
    program,
    wanted: { statusPort, dnsAddress },
  });
  const resolvConfFile = join(shortFolder, "resolv.conf");
  await writeFile(resolvConfFile, resolvConf);
  return {
    folder,
    interfaces: () => interfaces,
    resolvConf: resolvConfFile,
    // Without its agent an Envoy is of no use.
    enter: [...enter, "setpriv", "--pdeathsig", "KILL", "--"],
    envoyUser: user,
    output: output ?? "inherit",
    sockets,
    extendBootstrap: (bootstrap) => withInsideListener(bootstrap, INSIDE_SOCKET),
    mayRead: (file) => isForWorkload(workload.folder, file),
    connect: tunnelThrough(join(folder, INSIDE_SOCKET)),
  };
}
