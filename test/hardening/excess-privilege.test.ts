/** Rights and keys that made whoever took over a part of a mesh the owner of more. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { selfSignedCa } from "#ca/keys/self-signed.ts";
import { installed } from "../../src/install/fixture.ts";

const ROOT = join(import.meta.dirname, "../..");
const EVERYTHING = [
  "pilot.env.PILOT_ENABLE_STATUS=true",
  "global.multiCluster.enabled=true",
  "global.istiod.enableAnalysis=true",
];
const WORKLOADS = /^(pods|deployments|daemonsets|statefulsets|replicasets|replicationcontrollers|jobs|cronjobs)(\/|$)/;
const READING = new Set(["get", "list", "watch"]);
const KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----|signing_key:\s*["']?\w/;

interface Rule {
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}

/** All rules of all roles that an installation makes. */
async function rules(): Promise<readonly Rule[]> {
  const objects = await installed(...EVERYTHING);
  const roles = [...objects].filter(([name]) => /^(Cluster)?Role\//.test(name));
  assert.ok(roles.length > 0);
  return roles.flatMap(([, role]) => (role.rules ?? []) as readonly Rule[]);
}

test("CVE-2022-21701: the control plane can create no workload, and enter none", async () => {
  for (const { resources = [], verbs } of await rules()) {
    const workloads = resources.filter((resource) => WORKLOADS.test(resource));
    if (workloads.length === 0) continue;
    assert.deepEqual(
      verbs.filter((verb) => !READING.has(verb)),
      [],
      `may ${verbs.join()} ${workloads.join()}`,
    );
    assert.ok(!workloads.some((resource) => /\/(exec|attach|portforward|ephemeralcontainers)$/.test(resource)));
  }
});

test("ISTIO-SECURITY-2023-005: no role changes nodes, or gives rights to others", async () => {
  for (const { resources = [], verbs } of await rules()) {
    if (resources.some((resource) => resource === "nodes")) assert.ok(verbs.every((verb) => READING.has(verb)));
    for (const verb of ["escalate", "bind", "impersonate", "*"]) assert.ok(!verbs.includes(verb), verb);
    assert.ok(!resources.some((resource) => /^(cluster)?role(binding)?s$/.test(resource)), resources.join());
  }
});

test("CVE-2020-1764: no key is shipped, and each mesh makes its own", async () => {
  const files = globSync(["manifests/**/*", "samples/**/*", "images/*"], { cwd: ROOT, withFileTypes: true });
  const withKey = files
    .filter((file) => file.isFile())
    .map((file) => join(file.parentPath, file.name))
    .filter((file) => KEY.test(readFileSync(file, "utf8")));
  assert.deepEqual(withKey, []);
  const input = { trustDomain: "cluster.local", lifetimeMs: 60_000, keyKind: "P-256", now: 0 } as const;
  const [one, other] = [await selfSignedCa(input), await selfSignedCa(input)];
  assert.notEqual(one.keyPem, other.keyPem);
});
