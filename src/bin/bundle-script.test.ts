import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { bundleScript, codeFile } from "./bundle-script.ts";

const LAUNCHER = join(import.meta.dirname, "launcher.ts");
const SCRIPT = join(import.meta.dirname, "bundle-script.ts");
const BUNDLE = `
const { join } = require("node:path");
import("node:os").then(({ EOL }) => process.stdout.write(JSON.stringify([join(__dirname, "x"), __filename, process.argv.slice(1), require("node:fs").readFileSync("/proc/self/comm", "utf8").trim()]) + EOL));
`;

function setUp(t: Parameters<typeof temporaryFolder>[0]) {
  const folder = temporaryFolder(t);
  const bundle = join(folder, "bundle.cjs");
  writeFileSync(bundle, BUNDLE);
  const run = () =>
    JSON.parse(execFileSync(process.execPath, [LAUNCHER, bundle, "proxy", "--x=1"], { encoding: "utf8" }));
  return { bundle, run, expected: [join(folder, "x"), bundle, [bundle, "proxy", "--x=1"], "bundle"] };
}

test("the launcher runs a bundle as Node would, with its arguments", (t) => {
  const { run, expected } = setUp(t);
  assert.deepEqual(run(), expected);
});

test("the launcher runs what a bundle requires from beside it as a bundle, with its code", (t) => {
  const folder = temporaryFolder(t);
  const [bundle, rest] = [join(folder, "bundle.cjs"), join(folder, "bundle.rest.cjs")];
  writeFileSync(bundle, 'process.stdout.write(require("./bundle.rest.cjs").word);');
  writeFileSync(rest, 'module.exports = { word: require("node:path").basename(__filename) };');
  writeFileSync(codeFile(rest), bundleScript(rest).createCachedData());
  assert.equal(isRefused(rest), false);
  assert.equal(execFileSync(process.execPath, [LAUNCHER, bundle], { encoding: "utf8" }), "bundle.rest.cjs");
});

/** In a process of its own, because V8 remembers what it compiled. */
function isRefused(bundle: string): boolean {
  const text = `import { bundleScript } from ${JSON.stringify(SCRIPT)};
console.log(bundleScript(process.argv[1]).cachedDataRejected);`;
  const args = ["--input-type=module", "-e", text, bundle];
  return execFileSync(process.execPath, args, { encoding: "utf8" }).trim() !== "false";
}

test("bundleScript() takes the code that was kept for the bundle", (t) => {
  const { bundle, run, expected } = setUp(t);
  writeFileSync(codeFile(bundle), bundleScript(bundle).createCachedData());
  assert.equal(isRefused(bundle), false);
  assert.deepEqual(run(), expected);
});

test("bundleScript() compiles a bundle whose code is broken, or of another bundle", (t) => {
  const { bundle, run, expected } = setUp(t);
  const code = bundleScript(bundle).createCachedData();
  writeFileSync(codeFile(bundle), "garbage");
  assert.equal(isRefused(bundle), true);
  assert.deepEqual(run(), expected);
  writeFileSync(codeFile(bundle), code);
  writeFileSync(bundle, `${BUNDLE}// longer`);
  assert.equal(isRefused(bundle), true);
  assert.deepEqual(run(), expected);
});
