/** Rights of the control plane, as settings change them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { installed } from "./fixture.ts";

interface Rule {
  readonly apiGroups: readonly string[];
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

/** One line for each group, resource and list of names: `GROUP/RESOURCE[NAMES]: VERBS`. */
function lines(role: RawObject | undefined): readonly string[] {
  const rules = (role?.rules ?? []) as readonly Rule[];
  return rules
    .flatMap(({ apiGroups, resources, resourceNames, verbs }) =>
      apiGroups.flatMap((group) =>
        resources.map((name) => `${group}/${name}${resourceNames ? `[${resourceNames}]` : ""}: ${verbs.join(" ")}`),
      ),
    )
    .sort();
}

/** What the user's API is only read for. */
const CONFIGURATION = /^(networking|security|telemetry|extensions)\.istio\.io\/\w+: list watch$|^gateway\.networking/;

test("excess privilege (CVE-2022-21701, ISTIO-SECURITY-2023-005): the control plane has these rights in a cluster, and no others", async () => {
  const objects = await installed();
  const cluster = lines(objects.get("ClusterRole/istiod-clusterrole-istio-system"));
  assert.deepEqual(
    cluster.filter((line) => !CONFIGURATION.test(line)),
    [
      "/configmaps: create",
      "/configmaps: list watch",
      "/configmaps[istio-ca-root-cert,istio-ca-crl]: patch delete",
      "/namespaces: list watch",
      "/nodes: list watch",
      "/pods: list watch",
      "/secrets: list watch",
      "/services: list watch",
      "admissionregistration.k8s.io/mutatingwebhookconfigurations: list watch patch",
      "admissionregistration.k8s.io/validatingwebhookconfigurations: list watch patch",
      "authentication.k8s.io/tokenreviews: create",
      "authorization.k8s.io/subjectaccessreviews: create",
      "discovery.k8s.io/endpointslices: list watch",
      "networking.istio.io/serviceentries/status: patch",
      "networking.istio.io/workloadentries/status: patch",
      "networking.istio.io/workloadentries: create patch delete",
      "networking.istio.io/workloadgroups: get",
      "networking.k8s.io/ingressclasses: list watch",
      "networking.k8s.io/ingresses/status: patch",
      "networking.k8s.io/ingresses: list watch",
    ],
  );
  for (const line of cluster.filter((line) => CONFIGURATION.test(line))) assert.match(line, /: list watch$/);
  assert.deepEqual(lines(objects.get("Role/istio-system/istiod")), [
    "/secrets: create",
    "/secrets[istio-ca-secret]: get update",
    "coordination.k8s.io/leases: create",
    "coordination.k8s.io/leases[istio-leader]: get update",
    "networking.istio.io/gateways: create",
  ]);
});

test("excess privilege (CVE-2022-21701): no right makes or changes pods, workloads, roles, accounts or nodes", async () => {
  const objects = await installed("pilot.env.PILOT_ENABLE_STATUS=true", "global.multiCluster.enabled=true");
  const rights = [...objects].flatMap(([name, object]) => (/^(Cluster)?Role\//.test(name) ? lines(object) : []));
  assert.ok(rights.length > 20);
  const writing = rights.filter((line) => !/:( get| list| watch)+$/.test(line));
  const forbidden =
    /^(apps|batch|rbac\.authorization\.k8s\.io)\/|^\/(pods|nodes|serviceaccounts|services|namespaces)|impersonate|escalate|bind|deletecollection|\*/;
  assert.deepEqual(
    writing.filter((line) => forbidden.test(line)),
    [],
  );
});
