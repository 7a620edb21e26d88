/** Runs the bundle that the first argument names, with the other arguments. */
import { writeFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { runBundle } from "./bundle-script.ts";

const [node = "", , name = "", ...args] = process.argv;
const bundle = resolve(name);
process.argv = [node, bundle, ...args];
try {
  // The name by which ps, ss and lsof show it; the arguments stay as they are.
  writeFileSync("/proc/self/comm", basename(bundle, ".cjs"));
} catch {
  // Only Linux has it.
}
runBundle(bundle);
