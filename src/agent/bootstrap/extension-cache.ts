/** Which extensions an Envoy has, kept by the hash of its binary: asking it means starting it, which costs each start of a proxy. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { pipeline } from "node:stream/promises";

/** Whether a build has an extension, by its name. */
export type KnownExtensions = Readonly<Record<string, boolean>>;

/** The hash of a program; undefined when it cannot be read. */
export async function hashOf(binaryPath: string): Promise<string | undefined> {
  const hash = createHash("sha256");
  try {
    await pipeline(createReadStream(binaryPath), hash);
    return hash.digest("hex");
  } catch {
    return undefined; // its start will tell
  }
}

/** What is known of a build; nothing when the file is missing, broken, or about another one. */
export async function readKnown(file: string, hash: string): Promise<KnownExtensions> {
  try {
    const { [hash]: known }: Record<string, unknown> = JSON.parse(await readFile(file, "utf8"));
    const entries = typeof known === "object" && known !== null ? Object.entries(known) : [];
    return Object.fromEntries(entries.filter((entry): entry is [string, boolean] => typeof entry[1] === "boolean"));
  } catch {
    return {}; // asked again
  }
}

/** The content of the file for one build; what it had of others is of no use any more. */
export function knownText(hash: string, known: KnownExtensions): string {
  return `${JSON.stringify({ [hash]: known })}\n`;
}
