/** A thread that reads large documents of the configuration. Objects are handed over in portions: each costs a moment there. */
import { parentPort, workerData } from "node:worker_threads";
import type { Portion } from "#control-plane/read-apart.ts";
import { readObjects } from "#sources/document.ts";

const PORTION = 100;

const found = readObjects(String(workerData));
for (let start = 0; start < found.length; start += PORTION) {
  parentPort?.postMessage({ found: found.slice(start, start + PORTION) } satisfies Portion);
}
