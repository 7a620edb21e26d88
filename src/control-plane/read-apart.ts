import { existsSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { errorText } from "#lib/mesh-error.ts";
import { type FoundObject, unreadable } from "#sources/document.ts";

/** Some of the objects of a document. */
export interface Portion {
  readonly found: readonly FoundObject[];
}

/** More than the largest document that is read needs; one that takes more must not take the process with it. */
const MAX_HEAP_MB = 1_024;
const BUNDLED = join(import.meta.dirname, "read-worker.cjs");
const SOURCE = join(import.meta.dirname, "../bin/read-worker.ts");

/** Reads the objects of a large document on a thread of its own. What cannot be read there is reported as a broken document. */
export function readApart(text: string): Promise<readonly FoundObject[]> {
  const worker = new Worker(existsSync(BUNDLED) ? BUNDLED : SOURCE, {
    workerData: text,
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
  });
  const all: FoundObject[] = [];
  return new Promise((resolve) => {
    worker.on("message", ({ found }: Portion) => all.push(...found));
    worker.on("error", (error) => {
      const message = `cannot be read: ${errorText(error)}`;
      resolve([unreadable({ field: "", message, severity: "error", line: 1 })]);
    });
    worker.on("exit", () => resolve(all));
  });
}
