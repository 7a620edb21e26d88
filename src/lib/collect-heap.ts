import { getHeapStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** It takes one to two milliseconds for each megabyte, and nothing else happens meanwhile. */
const MOST_BYTES = 100 * 1024 * 1024;

/**
 * Collects V8's heap now, before work that should not wait for it; V8 by itself begins in the middle of work. False for a
 * heap that is too large to be collected at once.
 */
export function collectHeap(mostBytes: number = MOST_BYTES): boolean {
  if (getHeapStatistics().used_heap_size > mostBytes) return false;
  setFlagsFromString("--expose-gc"); // for contexts that are made from now on, such as this one
  runInNewContext("gc()");
  return true;
}
