/**
 * Published ports belong to the machine's own network, and the runner lives in the fabric's. When a running mesh gets new
 * ones, the runner starts this program once more outside, which opens them, hands the sockets over and ends.
 */
import { spawn } from "node:child_process";
import { Server } from "node:net";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { PublishedPort } from "../status/status.ts";
import { openHostPorts } from "./host-ports.ts";
import type { OpenPublished, WantedPort } from "./published.ts";

/** Under this number the runner holds the machine's network namespace open. */
export const HOST_NETWORK_FD = 4;
/** The hidden command that opens ports. */
const OPEN_PORTS_COMMAND = "open-ports";

interface OpenRequest {
  readonly wanted: readonly WantedPort[];
  readonly freePorts: boolean;
}

type FromHelper =
  | { readonly kind: "port"; readonly port: PublishedPort }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** Called by the runner: opens ports on the machine; all of them, or none. */
export async function openPortsOutside(
  self: readonly string[],
  wanted: readonly WantedPort[],
  freePorts: boolean,
): Promise<readonly OpenPublished[]> {
  if (wanted.length === 0) return [];
  const enter = [`--net=/proc/self/fd/${HOST_NETWORK_FD}`, "--"];
  const child = spawn("nsenter", [...enter, ...self, OPEN_PORTS_COMMAND], {
    stdio: ["ignore", "inherit", "inherit", "ipc", HOST_NETWORK_FD],
  });
  const opened: OpenPublished[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<readonly OpenPublished[]>();
  child.on("message", (message: FromHelper, handle: unknown) => {
    if (message.kind === "failed") reject(new MeshError(message.code, message.message));
    else if (handle instanceof Server) opened.push({ port: message.port, server: handle });
    if (opened.length === wanted.length) resolve(opened);
  });
  child.once("error", reject);
  child.once("exit", () =>
    reject(
      new MeshError("PORT_UNAVAILABLE", "Cannot open published ports while the mesh is up; take it down and up again"),
    ),
  );
  const request: OpenRequest = { wanted, freePorts };
  child.send(request);
  try {
    return await promise;
  } catch (error) {
    for (const { server } of opened) server.close();
    throw error;
  } finally {
    if (child.connected) child.disconnect();
  }
}

/** Called by the program outside: answers one request of its parent. */
export async function answerOpenRequest(): Promise<void> {
  const { wanted, freePorts } = await new Promise<OpenRequest>((resolve) => process.once("message", resolve));
  const tell = (message: FromHelper, handle?: Server) =>
    new Promise<void>((resolve) => process.send?.(message, handle, {}, () => resolve()));
  try {
    for (const { port, server } of await openHostPorts(wanted, freePorts)) {
      await tell({ kind: "port", port }, server);
      server.close();
    }
  } catch (error) {
    const code = error instanceof MeshError ? error.code : "INTERNAL";
    await tell({ kind: "failed", code, message: errorText(error) });
  }
}
