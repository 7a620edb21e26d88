/** The way out of a mesh, made by whoever starts it: from inside the fabric nobody could reach the machine's network. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { access } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { MeshError } from "#lib/mesh-error.ts";
import { restoreRules, setUpNetwork } from "../host/namespaces.ts";
import { connectHost } from "./host-side.ts";
import { FABRIC_RULES, fabricLines } from "./link.ts";
import { startUserspaceNetwork } from "./userspace.ts";

export interface EgressInput {
  readonly id: string;
  /** Name of the fabric's namespace, which must be there. */
  readonly fabric: string;
  /** The machine's network belongs to somebody else: it can be used, not changed. */
  readonly rootless: boolean;
}

export interface OpenEgress {
  /** In the machine's network, to ask its name servers through. */
  readonly resolver: Socket;
  /** What gives the way out ends with the last process that has this pipe open. */
  readonly keeper: Readable | Writable | undefined;
}

/** Makes the way out of a fabric. */
export async function openEgress({ id, fabric, rootless }: EgressInput): Promise<OpenEgress> {
  const keeper = rootless ? await startUserspaceNetwork(fabric) : await connect(id, fabric);
  await restoreRules(fabric, FABRIC_RULES);
  return { resolver: await openResolverSocket(), keeper };
}

async function connect(id: string, fabric: string): Promise<undefined> {
  const link = await connectHost({ id, fabric, outside: [] });
  await setUpNetwork({ netns: fabric, sysctls: {}, ip: fabricLines(link) });
  return undefined;
}

async function openResolverSocket(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0);
  await once(socket, "listening");
  return socket;
}

export interface EgressNeeds {
  readonly rootless: boolean;
  /** Where programs are looked up. */
  readonly path: string;
}

/** What a way out needs of the machine, before anything is started. */
export async function checkEgress({ rootless, path }: EgressNeeds): Promise<void> {
  const [tool, debianPackage] = rootless ? ["slirp4netns", "slirp4netns"] : ["nft", "nftables"];
  const places = path.split(":").map((folder) => access(join(folder, tool)));
  if ((await Promise.allSettled(places)).some(({ status }) => status === "fulfilled")) return;
  const why = rootless ? "without root, a way out goes through it" : "a way out is a rule of it";
  throw new MeshError(
    "TOOL_MISSING",
    `Cannot use --egress without "${tool}": ${why}; install it (Debian: apt-get install ${debianPackage})`,
  );
}
