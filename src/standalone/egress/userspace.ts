/** A way out that changes nothing of the machine: a program that plays the network, for those who may not touch the real one. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { MeshError } from "#lib/mesh-error.ts";
import { namespaceFile } from "../plan/names.ts";
import { FABRIC_END } from "./link.ts";

/** Its own network, seen from inside the fabric; like the cable's it is one that nobody routes. */
const RANGE = "198.19.255.0/24";

/** Descriptor numbers inside. */
const READY = 3;
const EXIT = 4;

/** Starts the program; answers with a pipe by which whoever has it open keeps it running. */
export async function startUserspaceNetwork(fabric: string): Promise<Readable | Writable> {
  const child = spawn(
    "slirp4netns",
    [
      ...["--configure", "--mtu=65520", "--disable-host-loopback", `--cidr=${RANGE}`],
      ...[`--ready-fd=${READY}`, `--exit-fd=${EXIT}`, "--netns-type=path", namespaceFile(fabric), FABRIC_END],
    ],
    { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"], detached: true, cwd: "/" },
  );
  let words = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    words += chunk.toString();
  });
  const failed = Promise.race([once(child, "error"), once(child, "close")]).then(() => {
    throw new MeshError("EGRESS_FAILED", `Cannot make a way out: slirp4netns ended: ${words.trim().slice(-300)}`);
  });
  await Promise.race([once(pipeOf(child, READY), "data"), failed]);
  child.stderr?.destroy();
  child.unref();
  return pipeOf(child, EXIT);
}

function pipeOf({ stdio }: ChildProcess, number: number): Readable | Writable {
  const pipe = stdio[number];
  if (pipe === undefined || pipe === null) throw new Error("a pipe was asked for");
  return pipe;
}
