/**
 * Where a workload lives, as its agent sees it: usually where the agent itself runs. An agent that serves several
 * workloads has a place for each of them, with a folder, addresses and sockets of its own, so nothing here is shared.
 */
import type { Socket as UdpSocket } from "node:dgram";
import type { FileHandle } from "node:fs/promises";
import type { Server, Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { isAbsolute, join } from "node:path";
import type { Bootstrap } from "./bootstrap/bootstrap.ts";
import type { Interfaces } from "./instance-addresses.ts";

export interface Place {
  /** What relative paths start from; empty for the working folder. */
  readonly folder: string;
  readonly interfaces: () => Interfaces;
  /** The file that names the name servers. */
  readonly resolvConf: string;
  /** Begins the command line of each program that runs there. */
  readonly enter: readonly string[];
  /** The user that Envoy runs as there, where it is not the agent's. */
  readonly envoyUser: number | undefined;
  /** Where Envoy's output goes: a file descriptor, or to that of the agent. */
  readonly output: number | "inherit";
  /** Listening sockets that were opened there; where the agent itself is, it opens them when it needs them. */
  readonly sockets: PlaceSockets | undefined;
  /** Adds to the bootstrap of the Envoy there what the agent needs in order to reach it. */
  readonly extendBootstrap: (bootstrap: Bootstrap) => Bootstrap;
  /** Whether its Envoy may get an open file as a secret; undefined where the agent can read no more than the workload. */
  readonly mayRead?: (file: FileHandle) => Promise<boolean>;
  /** Connects to an address there; undefined where the agent itself is. */
  readonly connect: Connect | undefined;
}

export interface PlaceSockets {
  readonly status: Server | undefined;
  /** By address. */
  readonly dns: ReadonlyMap<string, { readonly udp: UdpSocket; readonly tcp: Server }>;
}

export type Connect = (to: { readonly host: string; readonly port: number }, signal: AbortSignal) => Promise<Socket>;

/** The agent's own place. */
export const HERE: Place = {
  folder: "",
  interfaces: networkInterfaces,
  resolvConf: "/etc/resolv.conf",
  enter: [],
  envoyUser: undefined,
  output: "inherit",
  sockets: undefined,
  extendBootstrap: (bootstrap) => bootstrap,
  connect: undefined,
};

/** A path as it is meant in a place. */
export function pathIn({ folder }: Pick<Place, "folder">, path: string): string {
  return folder === "" || isAbsolute(path) || path === "" ? path : join(folder, path);
}
