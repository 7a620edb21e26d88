/** Runs all tests, or those whose path contains one of the arguments, and fails when anything was skipped under CI. */
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** As many files at most are tried again; where more fail, something is broken. */
const MOST_AGAIN = 4;

const root = join(import.meta.dirname, "..");
const wanted = process.argv.slice(2);
const files = globSync(
  [
    "src/**/*.test.ts",
    "packages/**/*.test.ts",
    "test/**/*.test.ts",
    "scripts/**/*.test.ts",
    "bench/**/*.test.ts",
    "samples/**/*.test.ts",
  ],
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
const list = join(mkdtempSync(join(tmpdir(), "tests-")), "failed");
let status = run(files, 3);
const failed = readFileSync(list, "utf8")
  .split("\n")
  .filter((file) => file !== "");
// Most tests start real proxies: on a busy machine one may miss its time because of the others. What fails alone is broken.
if (status !== 0 && failed.length > 0 && failed.length <= MOST_AGAIN) {
  console.log(`failed beside others, now once more alone:\n  ${failed.join("\n  ")}`);
  status = run(failed, 1);
}
rmSync(dirname(list), { recursive: true });
process.exit(status);

function run(some: readonly string[], concurrency: number): number {
  const { status: code } = spawnSync(
    process.execPath,
    [
      "--import=./test/support/file-limit.ts",
      "--test",
      `--test-concurrency=${concurrency}`,
      "--test-timeout=300000",
      "--test-reporter=dot",
      "--test-reporter-destination=stdout",
      "--test-reporter=./test/support/summary-reporter.ts",
      "--test-reporter-destination=stdout",
      ...some,
    ],
    { cwd: root, stdio: "inherit", env: { ...process.env, FAILED_FILES: list } },
  );
  return code ?? 1;
}
