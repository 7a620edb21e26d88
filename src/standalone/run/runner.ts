/**
 * The process that owns a mesh. It was started inside the fabric's network namespace and gets everything it needs by
 * messages: the host's listening sockets, then what to run. From then on it listens at the control socket. It ends when it
 * is told to, or, unless detached, when whoever started it is gone; in either case it removes all that it made.
 */
import { Socket } from "node:dgram";
import { Server } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { identify } from "#lib/process-id.ts";
import type { FromRunner, StartMessage, ToRunner } from "../control/messages.ts";
import type { MeshEnd } from "../control/protocol.ts";
import { serveControl } from "../control/serve-control.ts";
import { diskProblem } from "../host/disk-problem.ts";
import { makeFolders } from "../host/write-files.ts";
import { openIssuer } from "../identity/issuer.ts";
import { workloadKey } from "../mesh/mesh.ts";
import { planMesh } from "../plan/plan.ts";
import { statePaths } from "../plan/state-paths.ts";
import { HOST_NETWORK_FD, openPortsOutside } from "../ports/open-ports.ts";
import type { OpenPublished } from "../ports/published.ts";
import type { Changeable } from "./changes.ts";
import { cleanMesh } from "./clean.ts";
import { MeshRun } from "./mesh-run.ts";
import { Requests } from "./requests.ts";

const GRACE_MS = 500;
const STOP_SIGNALS = ["SIGTERM", "SIGINT", "SIGHUP"] as const;

export interface RunnerInput {
  readonly log: Logger;
  /** Command line of this program without its arguments. */
  readonly self: readonly string[];
}

/** Runs a mesh to its end; answers with the exit code. */
export async function runRunner(runner: RunnerInput): Promise<number> {
  const { log } = runner;
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) {
    process.on(name, () => {
      log.info("asked to stop", { signal: name });
      stop.abort();
    });
  }
  const received = await receive();
  const outside =
    received.resolver === undefined ? undefined : ["nsenter", `--net=/proc/${process.pid}/fd/${HOST_NETWORK_FD}`, "--"];
  const { desired, detached } = received.start;
  if (!detached) process.on("disconnect", () => stop.abort());
  try {
    const code = await runMesh({ ...runner, ...received }, stop.signal);
    if (!stop.signal.aborted) tell({ kind: "finished", code });
    return 0;
  } catch (cause) {
    const error = diskProblem(cause, desired.stateFolder);
    log.error("the mesh failed", { reason: errorText(error) });
    tell({ kind: "failed", code: error instanceof MeshError ? error.code : "INTERNAL", message: errorText(error) });
    if (!(error instanceof MeshError)) throw error;
    return 1;
  } finally {
    await cleanMesh({ id: desired.id, stateFolder: desired.stateFolder, graceMs: GRACE_MS, outside });
    log.info("everything is removed");
    if (process.connected) process.disconnect();
  }
}

interface Received {
  readonly start: StartMessage;
  readonly ports: readonly OpenPublished[];
  /** Of a mesh with a way out. */
  readonly resolver: Socket | undefined;
}

/** Collects the ports until the message that starts the mesh. */
function receive(): Promise<Received> {
  const ports: OpenPublished[] = [];
  let resolver: Socket | undefined;
  return new Promise((resolve, reject) => {
    process.once("disconnect", () => reject(new MeshError("START_FAILED", "whoever started this mesh is gone")));
    process.on("message", (message: ToRunner, handle: unknown) => {
      if (message.kind === "start") resolve({ start: message, ports, resolver });
      else if (message.kind === "resolver" && handle instanceof Socket) resolver = handle;
      else if (message.kind === "port" && handle instanceof Server) ports.push({ port: message.port, server: handle });
    });
  });
}

async function runMesh(input: RunnerInput & Received, signal: AbortSignal): Promise<number> {
  const { start, ports, resolver, log, self } = input;
  const { desired } = start;
  const runner = await identify(process.pid);
  if (runner === undefined) throw new Error("a process knows itself");
  const paths = statePaths(desired.stateFolder);
  await makeFolders([{ path: paths.issuer, mode: 0o700, owner: 0 }]);
  const issuer = await openIssuer(paths.issuer);
  const run = new MeshRun({
    plan: planMesh({ ...desired, jwtRule: issuer.jwtRule, addresses: new Map() }),
    issuer,
    published: ports,
    resolver,
    runner,
    startTimeoutMs: start.startTimeoutMs,
    exitWhenDone: desired.mesh.exitWhenDone,
    log,
    onReady: (status) => tell({ kind: "ready", status }),
  });
  const mesh: Changeable = {
    run,
    desired,
    jwtRule: issuer.jwtRule,
    templates: new Map(desired.mesh.members.map((member) => [workloadKey(member), member])),
    openPorts: (wanted, freePorts) => openPortsOutside(self, wanted, freePorts),
  };
  const end = Promise.withResolvers<MeshEnd>();
  const requests = new Requests(mesh, end.promise);
  using _ = run.events.listen((line) => tell({ kind: "progress", line }));
  const close = await serveControl({
    path: paths.control,
    handle: (request, session) => requests.handle(request, session),
    log,
  });
  let code = 1;
  try {
    code = await run.run(signal);
    return code;
  } finally {
    end.resolve({ code });
    await requests.settled();
    // Those who watch get their last word before the line is cut.
    await setImmediate();
    close();
  }
}

function tell(message: FromRunner): void {
  if (process.connected) process.send?.(message);
}
