import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runInstallCommand as mizzen } from "../../../test/support/install-command.ts";

const folder = mkdtempSync(join(tmpdir(), "mizzen-install-"));
after(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}

for (const [args, reason] of [
  [["--set", "profile=huge"], /there is no profile "huge"/],
  [["--set", "a"], /write name=value/],
  [["-f", "/nowhere.yaml"], /nowhere\.yaml cannot be read/],
  [["--readiness-timeout=soon"], /is no duration/],
  [["-c", "/nowhere"], /kubeconfig \/nowhere cannot be read/],
  [["--revision", "A B"], /revision "A B" is no name/],
  [["--set", "pilot.replicaCount=many"], /pilot\.replicaCount: a number is wanted/],
  [["--set", "components.ztunnel.enabled=true"], /--set: components\.ztunnel: is no part of this mesh/],
  [["-d", "/nowhere"], /\/nowhere\/.* cannot be read, so there is no chart/],
  [["--colour"], /unknown option/],
] as const) {
  test(`a wrong command line is told in one line: install ${args.join(" ")}`, async () => {
    const { code, stderr } = await mizzen(["install", "-y", ...args], { HOME: folder });
    assert.equal(code, 2, stderr);
    assert.match(stderr, reason);
  });
}

test("an API server that is not there is told at once", async () => {
  const cluster = { name: "c", cluster: { server: "https://127.0.0.1:1" } };
  const context = { name: "c", context: { cluster: "c" } };
  const config = file(
    "kubeconfig",
    JSON.stringify({ "current-context": "c", clusters: [cluster], contexts: [context] }),
  );
  const { code, stderr } = await mizzen(["install", "-y"], { KUBECONFIG: `/nowhere:${config}` });
  assert.equal(code, 1);
  assert.match(stderr, /ECONNREFUSED/);
});

test("precheck takes istioctl's levels, in any spelling, and no others", async () => {
  for (const level of ["Info", "warning", "ERROR"]) {
    const { code, stderr } = await mizzen(["precheck", "--output-threshold", level, "-c", "/nowhere"]);
    assert.equal(code, 2);
    assert.match(stderr, /kubeconfig \/nowhere cannot be read/);
  }
  const wrong = await mizzen(["precheck", "--output-threshold", "loud"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /Choose one of Info, Warning, Error/);
});

test("manifest generate and install --dry-run print the same objects", async () => {
  const generated = await mizzen(["manifest", "generate", "--set", "profile=empty"]);
  const dry = await mizzen(["install", "--dry-run", "--set", "profile=empty"]);
  assert.equal(generated.code, 0, generated.stderr);
  assert.equal(dry.stdout, generated.stdout);
  assert.match(generated.stdout, /^kind: Namespace$/m);
});

test("manifest diff shows what changes, and its exit code says whether anything does", async () => {
  const [one, two] = ["a", "b"].map((value) =>
    file(`${value}.yaml`, `kind: ConfigMap\nmetadata: {name: m}\ndata: {x: ${value}}\n`),
  );
  const differ = await mizzen(["manifest", "diff", String(one), String(two)]);
  assert.equal(differ.code, 1);
  assert.match(differ.stdout, /changed: ConfigMap\/m\n(.|\n)*- {2}x: a\n\+ {2}x: b/);
  const json = await mizzen(["manifest", "diff", String(one), String(two), "-o", "json"]);
  assert.equal(JSON.parse(json.stdout)[0].change, "changed");
  assert.equal((await mizzen(["manifest", "diff", String(one), String(one)])).code, 0);
  const missing = await mizzen(["manifest", "diff", String(one), join(folder, "none")]);
  assert.deepEqual([missing.code, missing.stderr.includes("none cannot be read")], [2, true]);
});

test("profile list, dump and diff", async () => {
  assert.equal(
    (await mizzen(["profile", "list"])).stdout,
    "Profiles:\n    default\n    demo\n    empty\n    minimal\n",
  );
  assert.deepEqual(JSON.parse((await mizzen(["profile", "list", "-o", "json"])).stdout).length, 4);
  const dumped = await mizzen(["profile", "dump", "minimal", "-o", "json", "--set", "hub=h"]);
  const values = JSON.parse(dumped.stdout);
  assert.equal(values.gateways["istio-ingressgateway"].enabled, false);
  assert.equal(values.global.hub, "h");
  const diff = await mizzen(["profile", "diff", "default", "minimal"]);
  assert.equal(diff.code, 1);
  assert.match(diff.stdout, /^-\s+enabled: true\n\+\s+enabled: false$/m);
  assert.equal((await mizzen(["profile", "diff", "demo", "demo"])).code, 0);
});

test("a program has to say that it means it", async () => {
  const { code, stderr } = await mizzen(["uninstall", "--purge"], {
    KUBECONFIG: file(
      "k",
      '{"current-context":"c","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"c","context":{"cluster":"c"}}]}',
    ),
  });
  assert.equal(code, 2);
  assert.match(stderr, /Say -y to go on/);
});
