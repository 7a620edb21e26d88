import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";

/** Bytes per turn of the event loop: some milliseconds. */
const SLICE = 4 * 1024 * 1024;

/** The digest of content that may be large, in hex. Others get their turn in between. */
export async function sha256(bytes: Buffer): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes.length; at += SLICE) {
    if (at > 0) await nextTurn();
    hash.update(bytes.subarray(at, at + SLICE));
  }
  return hash.digest("hex");
}
