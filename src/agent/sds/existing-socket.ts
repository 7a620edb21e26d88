/** SDS servers of others, such as SPIRE's agent, whose sockets are mounted at places that are agreed on. */
import { lstat, rm } from "node:fs/promises";
import { connect } from "node:http2";
import { connect as connectSocket } from "node:net";
import { MeshError } from "#lib/mesh-error.ts";
import { isServed } from "../unix-server.ts";

/** Where we serve secrets from files when the workload's certificate comes from a foreign server. */
export const FILES_SOCKET = "./var/run/secrets/credential-uds/files-socket";

const HEALTH_TIMEOUT_MS = 1_000;

/** Whether a foreign server answers on a socket; what a dead one left behind is removed. */
export async function isServedByOthers(path: string): Promise<boolean> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats === undefined || stats.isFile()) return false;
  if ((await isServed(path)) && (await speaksGrpc(path))) return true;
  try {
    await rm(path);
  } catch (cause) {
    throw new MeshError("SDS_SOCKET_INVALID", `existing SDS socket ${path} could not be removed`, { cause });
  }
  return false;
}

/** Only a server of HTTP/2 begins with its settings. */
function speaksGrpc(path: string): Promise<boolean> {
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
