/** Runs all tests, or those whose path contains one of the arguments, and fails when anything was skipped under CI. */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");
const wanted = process.argv.slice(2);
const files = globSync(
  ["src/**/*.test.ts", "test/**/*.test.ts", "scripts/**/*.test.ts", "bench/**/*.test.ts", "samples/**/*.test.ts"],
  {
    cwd: root,
  },
)
  .filter((file) => wanted.length === 0 || wanted.some((part) => file.includes(part)))
  .sort();
if (files.length === 0) {
  console.error(`no test file matches ${wanted.join(" ")}`);
  process.exit(1);
}
const { status } = spawnSync(
  process.execPath,
  [
    "--test",
    "--test-concurrency=3",
    "--test-timeout=300000",
    "--test-reporter=dot",
    "--test-reporter-destination=stdout",
    "--test-reporter=./test/support/summary-reporter.ts",
    "--test-reporter-destination=stdout",
    ...files,
  ],
  { cwd: root, stdio: "inherit" },
);
process.exit(status ?? 1);
