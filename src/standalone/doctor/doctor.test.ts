import assert from "node:assert/strict";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { meshUnavailable, mizzen } from "../../../test/support/mesh-run.ts";
import { type DiagnosisInput, diagnose, routesInto } from "./diagnose.ts";
import { tryKernel } from "./kernel.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const INPUT: DiagnosisInput = {
  uid: process.getuid?.() ?? -1,
  path: PATH,
  installed: {
    node: process.execPath,
    envoy: join(ROOT, ".cache/envoy"),
    agentBundle: join(ROOT, "dist/pilot-agent.cjs"),
    discoveryBundle: join(ROOT, "dist/pilot-discovery.cjs"),
  },
  stateFolder: join(tmpdir(), "not/there/yet"),
  nodeVersion: "v24.0.0",
};

/** What is not good, by check. */
async function complaints(change: Partial<DiagnosisInput>): Promise<ReadonlyMap<string, string>> {
  const findings = await diagnose({ ...INPUT, ...change });
  const bad = findings.filter(({ verdict }) => verdict === "bad");
  for (const { check, remedy } of bad) assert.notEqual(remedy, "", `${check} has no remedy`);
  return new Map(bad.map(({ check, found, remedy }) => [check, `${found}: ${remedy}`]));
}

test("diagnose() finds nothing bad on a machine on which meshes run", { skip: meshUnavailable() }, async () => {
  assert.deepEqual(await complaints({}), new Map());
});

test("diagnose() says what is missing and how to get it", async () => {
  const nowhere = {
    node: "/x",
    envoy: "/nowhere/envoy",
    agentBundle: "/nowhere/a.cjs",
    discoveryBundle: "/nowhere/d.cjs",
  };
  const found = await complaints({ installed: nowhere, stateFolder: "/proc/state", nodeVersion: "v20.1.0" });
  assert.match(found.get("Envoy") ?? "", /^none at \/nowhere\/envoy: run `make setup`, or set ENVOY/);
  assert.match(found.get("bundles") ?? "", /^missing in \/nowhere: run `make build`$/);
  assert.match(found.get("Node") ?? "", /^v20\.1\.0: run `make setup`, which installs Node 24$/);
  assert.match(found.get("disk") ?? "", /--state$/);
});

test("diagnose() names the package of each tool that is not there, and tries what it can without them", async () => {
  const found = await complaints({ path: "/nowhere" });
  assert.equal(found.get("ip"), "not installed: install it (Debian: apt-get install iproute2)");
  assert.equal(found.get("iptables-restore"), "not installed: install it (Debian: apt-get install iptables)");
});

test("diagnose() says that an Envoy does not run", async () => {
  const folder = await mkdtemp(join(tmpdir(), "doctor-"));
  const envoy = join(folder, "envoy");
  await writeFile(envoy, "#!/bin/sh\necho wrong machine >&2; exit 3\n");
  await chmod(envoy, 0o755);
  const found = await complaints({ installed: { ...INPUT.installed, envoy } });
  await rm(folder, { recursive: true });
  assert.match(found.get("Envoy") ?? "", /does not run: .*wrong machine/);
});

test("tryKernel() has the tool's own words for what the kernel refuses", async () => {
  const folder = await mkdtemp(join(tmpdir(), "doctor-"));
  await writeFile(join(folder, "ip"), "#!/bin/sh\necho Error: Unknown device type. >&2; exit 2\n", { mode: 0o755 });
  const findings = await tryKernel(["env", `PATH=${folder}:/usr/bin:/bin`]);
  await rm(folder, { recursive: true });
  const [bridge] = findings;
  assert.deepEqual(bridge, {
    check: "bridge devices",
    verdict: "bad",
    found: "Error: Unknown device type.",
    remedy: "load the module: modprobe bridge",
  });
  const optional = findings.find(({ check }) => check === "TPROXY");
  assert.deepEqual([optional?.verdict, optional?.found.includes("not found")], ["poor", true], optional?.found);
});

test("routesInto() sees routes that overlap, but not the default one", () => {
  const table = (destination: string, mask: string) =>
    `Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\neth0\t${destination}\t0\t1\t0\t0\t0\t${mask}\t0\t0\t0\n`;
  const into = (destination: string, mask: string) => routesInto(table(destination, mask), "10.244.0.1");
  assert.ok(!into("00000000", "00000000"), "default");
  assert.ok(into("0000F40A", "0000FFFF"), "10.244.0.0/16");
  assert.ok(into("0005F40A", "00FFFFFF"), "10.244.5.0/24");
  assert.ok(into("0000000A", "000000FF"), "10.0.0.0/8");
  assert.ok(!into("0000F50A", "0000FFFF"), "10.245.0.0/16");
  assert.ok(!routesInto("", "10.244.0.1"));
});

test("doctor prints a table or JSON, and its exit code says whether meshes can run", {
  skip: meshUnavailable(),
}, async () => {
  const good = await mizzen(["doctor"]);
  assert.equal(good.code, 0, good.stdout);
  assert.match(good.stdout, /^CHECK +RESULT +WHAT\nrights +ok +root$/m);
  assert.match(good.stdout, /\nmeshes can run here\n$/);
  const bad = await mizzen(["doctor", "-o", "json"], { ENVOY: "/nowhere/envoy" });
  assert.equal(bad.code, 1);
  const { fit, findings } = JSON.parse(bad.stdout);
  assert.equal(fit, false);
  assert.deepEqual(
    findings
      .filter(({ verdict }: { verdict: string }) => verdict === "bad")
      .map(({ check }: { check: string }) => check),
    ["Envoy"],
  );
  assert.equal((await mizzen(["doctor", "-o", "xml"])).code, 2);
});
