/** Rights of the control plane, as settings change them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { installed } from "./fixture.ts";

interface Rule {
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

async function rulesFor(...set: readonly string[]): Promise<readonly Rule[]> {
  const role = (await installed(...set)).get("ClusterRole/istiod-clusterrole-istio-system");
  return (role?.rules ?? []) as readonly Rule[];
}

test("the status of objects may be written where something writes it", async () => {
  const mayWrite = async (...set: readonly string[]) =>
    (await rulesFor(...set)).some(({ resources }) => resources.includes("virtualservices/status"));
  assert.equal(await mayWrite(), false);
  assert.equal(await mayWrite("pilot.env.PILOT_ENABLE_STATUS=true"), true);
  assert.equal(await mayWrite("pilot.env.PILOT_ENABLE_ANALYSIS=1"), true);
  assert.equal(await mayWrite("global.istiod.enableAnalysis=true"), true);
  assert.equal(await mayWrite("global.istiod.enableAnalysis=true", "pilot.env.PILOT_ENABLE_ANALYSIS=false"), false);
});

test("the ConfigMaps of namespaces may be changed under the names that they have", async () => {
  const names = async (...set: readonly string[]) =>
    (await rulesFor(...set)).find(({ verbs }) => verbs.includes("delete") && !verbs.includes("create"))?.resourceNames;
  assert.deepEqual(await names(), ["istio-ca-root-cert", "istio-ca-crl"]);
  assert.deepEqual(await names("pilot.env.PILOT_CA_CERT_CONFIGMAP=roots", "pilot.env.PILOT_CRL_CONFIGMAP=revoked"), [
    "roots",
    "revoked",
  ]);
  assert.deepEqual(await names("global.trustBundleName=roots", "pilot.crlConfigMapName=revoked"), ["roots", "revoked"]);
});

test("no rule is for everything", async () => {
  const rules = await rulesFor("pilot.env.PILOT_ENABLE_STATUS=true", "global.multiCluster.enabled=true");
  assert.deepEqual(
    rules.filter(({ resources, verbs }) => [...resources, ...verbs].includes("*")),
    [],
  );
});
