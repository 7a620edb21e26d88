import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import { Slices } from "#lib/async/slices.ts";
import { splitDocuments } from "#lib/yaml/read.ts";
import type { ReadDocuments } from "../config-file.ts";
import { type FoundObject, objectSteps } from "../document.ts";
import { reasonOf } from "./scan.ts";

/** A file as read: its text, the reason why there is none, or neither when there is no such file. */
export interface ReadText {
  readonly text?: string | undefined;
  readonly failure?: string | undefined;
}

/** More than any configuration, less than what would stop the process. */
const MAX_BYTES = 64 * 1024 * 1024;

/** Reads a text file. */
export async function readText(path: string): Promise<ReadText> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) return {};
    // Opening a named pipe would wait for a writer, and the process could not even end.
    if (!found.isFile()) return { failure: "is not a regular file" };
    if (found.size > MAX_BYTES) return { failure: `is larger than ${MAX_BYTES / 1024 / 1024} MiB` };
    const content = await readFile(path);
    return isUtf8(content) ? { text: content.toString("utf8") } : { failure: "is not a text file" };
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
    return code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR" ? {} : { failure: reasonOf(thrown) };
  }
}

/** Work goes on for this long before others get their turn. */
const SLICE_MS = 5;

/** Reads the documents of a text that are not known yet, in slices: a file of thousands must not stop the process. */
export async function readNewDocuments(
  text: string,
  { known, readApart }: { readonly known: ReadDocuments | undefined; readonly readApart: ReadApart | undefined },
): Promise<ReadDocuments> {
  const documents = new Map<string, readonly FoundObject[]>();
  const slices = new Slices(() => performance.now(), SLICE_MS);
  const read = (part: string) =>
    readApart !== undefined && part.length >= LARGE_TEXT ? readApart(part) : slices.run(objectSteps(part));
  for (const part of splitDocuments(text)) {
    documents.set(part.text, known?.get(part.text) ?? (await read(part.text)));
    if (slices.isOver) await slices.next();
  }
  return documents;
}

/** Reads the objects of a document elsewhere than on this thread. */
export type ReadApart = (text: string) => Promise<readonly FoundObject[]>;

/** Takes about 50 ms to read; below that it is not worth another thread. */
const LARGE_TEXT = 256 * 1024;
