/** SDS servers of others, such as SPIRE's agent, whose sockets are mounted at places that are agreed on. */
import { lstatSync } from "node:fs";
import { connect as connectSocket } from "node:net";
import { basename, join } from "node:path";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { WORKLOAD_SOCKET_FOLDER } from "../bootstrap/clusters.ts";
import { FILE_SDS_SOCKET } from "../bootstrap/input.ts";
import { failingAs } from "../failing-as.ts";
import { type Place, pathIn } from "../place.ts";
import { isServed, makeRoom } from "../unix-socket.ts";

/** A foreign server of credentials that Gateways and DestinationRules name as `sds://`. */
export const CREDENTIAL_SOCKET = "./var/run/secrets/credential-uds/socket";

/** The name of our own socket. */
const OWN_SOCKET_FILE = "socket";
const HEALTH_TIMEOUT_MS = 1_000;

/** Whether a foreign server gives the workload's certificate. Rejects when one was named that is not there. */
export async function findForeignServer(socketFile: string, place: Place, log: Logger): Promise<boolean> {
  if (socketFile === "" || socketFile !== basename(socketFile)) {
    throw new MeshError(
      "SDS_SOCKET_INVALID",
      `workload identity socket file override must be a filename, not a path: ${socketFile}`,
    );
  }
  const path = pathIn(place, join(WORKLOAD_SOCKET_FOLDER, socketFile));
  if (await failingAs("failed to check SDS socket", () => isServedByOthers(path))) {
    log.info(`Existing workload SDS socket found at ${path}. Default Istio SDS Server will only serve files`);
    return true;
  }
  if (socketFile === OWN_SOCKET_FILE) return false;
  throw new MeshError(
    "SDS_SOCKET_INVALID",
    `agent configured for non-default SDS socket path: ${path} but no socket found`,
  );
}

/** Where our own server listens. */
export function ownSocketPath(place: Place, onlyFiles: boolean): string {
  return pathIn(place, onlyFiles ? FILE_SDS_SOCKET : join(WORKLOAD_SOCKET_FOLDER, OWN_SOCKET_FILE));
}

/** Whether a foreign server answers on a socket; what a dead one left behind is removed, as is an empty folder. */
export async function isServedByOthers(path: string): Promise<boolean> {
  if (!isThere(path)) return false;
  if ((await isServed(path)) && (await speaksGrpc(path))) return true;
  try {
    makeRoom(path);
  } catch (cause) {
    throw new MeshError("SDS_SOCKET_INVALID", `existing SDS socket ${path} could not be removed`, { cause });
  }
  return false;
}

/** Something, and not a file. */
function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() === false;
  } catch {
    return false; // what cannot be looked at cannot be connected to
  }
}

/** Only a server of HTTP/2 begins with its settings. */
async function speaksGrpc(path: string): Promise<boolean> {
  const { connect } = await import("node:http2");
  return new Promise((resolve) => {
    const session = connect("http://localhost", { createConnection: () => connectSocket(path) });
    const settle = (speaks: boolean) => {
      clearTimeout(timer);
      session.destroy();
      resolve(speaks);
    };
    const timer = setTimeout(() => settle(false), HEALTH_TIMEOUT_MS);
    session.on("remoteSettings", () => settle(true));
    session.on("error", () => settle(false));
    session.on("close", () => settle(false));
  });
}
