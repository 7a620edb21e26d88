/**
 * The process that owns a mesh. It was started inside the fabric's network namespace and gets everything it needs by
 * messages: the host's listening sockets, then what to run. It ends when it is told to, or, unless detached, when whoever
 * started it is gone; in either case it removes all that it made.
 */
import { Server } from "node:net";
import type { Logger } from "#lib/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { identify } from "../host/processes.ts";
import { makeFolders } from "../host/write-files.ts";
import { planMesh } from "../plan/plan.ts";
import { statePaths } from "../plan/state-paths.ts";
import type { FromRunner, StartMessage, ToRunner } from "../up/messages.ts";
import { cleanMesh } from "./clean.ts";
import { openIssuer } from "./issuer.ts";
import { MeshRun } from "./mesh-run.ts";
import type { PublishedPort } from "./status.ts";

const GRACE_MS = 500;
const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

/** Runs a mesh to its end; answers with the exit code. */
export async function runRunner(log: Logger): Promise<number> {
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      log.info("asked to stop", { signal: name });
      stop.abort();
    });
  }
  const { start, ports } = await receive();
  if (!start.detached) process.on("disconnect", () => stop.abort());
  const { id, stateFolder } = start.input;
  try {
    await runMesh({ start, ports, log }, stop.signal);
    return 0;
  } catch (error) {
    log.error("the mesh failed", { reason: errorText(error) });
    tell({ kind: "failed", code: error instanceof MeshError ? error.code : "INTERNAL", message: errorText(error) });
    if (!(error instanceof MeshError)) throw error;
    return 1;
  } finally {
    await cleanMesh({ id, stateFolder, graceMs: GRACE_MS });
    log.info("everything is removed");
    if (process.connected) process.disconnect();
  }
}

interface ReceivedPort {
  readonly port: PublishedPort;
  readonly server: Server;
}

/** Collects the ports until the message that starts the mesh. */
function receive(): Promise<{ readonly start: StartMessage; readonly ports: readonly ReceivedPort[] }> {
  const ports: ReceivedPort[] = [];
  return new Promise((resolve, reject) => {
    process.once("disconnect", () => reject(new MeshError("START_FAILED", "whoever started this mesh is gone")));
    process.on("message", (message: ToRunner, handle: unknown) => {
      if (message.kind === "start") resolve({ start: message, ports });
      else if (handle instanceof Server) ports.push({ port: message.port, server: handle });
    });
  });
}

interface RunInput {
  readonly start: StartMessage;
  readonly ports: readonly ReceivedPort[];
  readonly log: Logger;
}

async function runMesh({ start, ports, log }: RunInput, signal: AbortSignal): Promise<void> {
  const { input } = start;
  const runner = await identify(process.pid);
  if (runner === undefined) throw new Error("a process knows itself");
  const paths = statePaths(input.stateFolder);
  await makeFolders([{ path: paths.issuer, mode: 0o700, owner: 0 }]);
  const issuer = await openIssuer(paths.issuer);
  const plan = planMesh({ ...input, jwtRule: issuer.jwtRule });
  const published = ports.map(({ port, server }) => {
    const target = plan.members.find(({ key }) => key === port.member);
    if (target === undefined) throw new Error(`no member "${port.member}" for a published port`);
    return { ...port, server, target };
  });
  const run = new MeshRun({
    plan,
    issuer,
    published,
    runner,
    startTimeoutMs: start.startTimeoutMs,
    log,
    onProgress: (line) => {
      log.info(line);
      tell({ kind: "progress", line });
    },
    onReady: (status) => tell({ kind: "ready", status }),
  });
  await run.run(signal);
}

function tell(message: FromRunner): void {
  if (process.connected) process.send?.(message);
}
