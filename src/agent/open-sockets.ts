/** The sockets between Envoy and its agent. They are opened before Envoy starts, and served while it does. */
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { failingAs, STARTING } from "./failing-as.ts";
import { pathIn } from "./place.ts";
import { ownSocketPath } from "./sds/existing-socket.ts";
import { laterSocket, openUnixSocket, type UnixSocket } from "./unix-socket.ts";
import { xdsSocketPath } from "./xds-proxy/xds-config.ts";

export interface EnvoySockets {
  readonly xds: UnixSocket;
  /** Undefined without Envoy: a workload that speaks xDS itself reads its certificate from OUTPUT_CERTS. */
  readonly sds: UnixSocket | undefined;
}

/** Without Envoy the application itself connects, as whatever user it has. */
const FOR_APPLICATIONS = 0o666;
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 1_000;

export async function openSockets(context: AgentContext): Promise<EnvoySockets> {
  const { config, proxyConfig, place, done } = context;
  const sds = config.envoy.disabled ? undefined : await openSecretSocket(context);
  closeWhen(done, sds);
  const xds = await failingAs(STARTING.xds, () =>
    openUnixSocket(pathIn(place, xdsSocketPath(proxyConfig)), config.envoy.disabled ? FOR_APPLICATIONS : undefined),
  );
  closeWhen(done, xds);
  return { xds, sds };
}

function closeWhen(done: AbortSignal, socket: UnixSocket | undefined): void {
  if (socket === undefined) return;
  done.addEventListener("abort", () => socket.close(), { once: true });
  if (done.aborted) socket.close();
}

/** One try is waited for. Envoy starts without what cannot be had yet, and asks again until it is there. */
async function openSecretSocket({ place, done, servedByOthers, ...context }: AgentContext): Promise<UnixSocket> {
  const log = context.log.scope("sds");
  const path = ownSocketPath(place, servedByOthers);
  const open = async () => {
    try {
      const socket = await openUnixSocket(path);
      const what = servedByOthers ? "file certificates only" : "workload certificates";
      log.info(`SDS server for ${what} started, listening on "${path}"`);
      return socket;
    } catch (thrown) {
      log.error(`SDS grpc server for workload proxies failed to set up UDS: ${errorText(thrown)}`);
      return undefined;
    }
  };
  log.info("Starting SDS grpc server");
  return (await open()) ?? laterSocket(openAgain(open, log, done));
}

/** Tries again with growing pauses. */
async function openAgain(
  open: () => Promise<UnixSocket | undefined>,
  log: Logger,
  done: AbortSignal,
): Promise<UnixSocket | undefined> {
  for (let attempt = 1; attempt < ATTEMPTS; attempt++) {
    await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1), done);
    if (done.aborted) return undefined;
    const socket = await open();
    if (socket !== undefined) return socket;
  }
  log.warn("SDS grpc server could not be started");
  return undefined;
}
