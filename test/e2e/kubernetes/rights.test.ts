/** A control plane whose account may only read: each right that it lacks is named, and used as soon as it is given. */
import { after, before, describe, test } from "node:test";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { webhookConfigurations } from "../../support/kubernetes/webhook-configurations.ts";

const ENTRY = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: outside}
spec: {hosts: [outside.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`;

describe("rights that are missing", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let plane: TestControlPlane;
  before(async () => {
    server = await startApiServer({ controllers: true });
    await server.define(customResourceDefinitions());
    await server.kubectl(["create", "namespace", "istio-system"]);
    await server.kubectl(["-n", "istio-system", "create", "serviceaccount", "reader"]);
    await server.apply(ENTRY);
    for (const webhook of (await webhookConfigurations()).injection) await server.apply(JSON.stringify(webhook));
    await grant("reads", { apiGroups: ["*"], resources: ["*"], verbs: ["get", "list", "watch"] });
    const token = (await server.kubectl(["-n", "istio-system", "create", "token", "reader"])).trim();
    const env = { POD_NAME: "istiod-1", PILOT_ENABLE_STATUS: "true", PILOT_ENABLE_IP_AUTOALLOCATE: "true" };
    plane = new TestControlPlane({ cluster: await server.api(token), env });
  });
  after(async () => {
    await plane?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
  });

  async function grant(name: string, rule: object): Promise<void> {
    const rbac = { apiVersion: "rbac.authorization.k8s.io/v1", metadata: { name } };
    const subjects = [{ kind: "ServiceAccount", name: "reader", namespace: "istio-system" }];
    const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name };
    for (const object of [
      { ...rbac, kind: "ClusterRole", rules: [rule] },
      { ...rbac, kind: "ClusterRoleBinding", roleRef, subjects },
    ])
      await server.apply(JSON.stringify(object));
  }

  /** Waits for the words, then gives that right alone. */
  async function isNamedAndGiven(group: string, resource: string, verb: string): Promise<void> {
    const rule = `apiGroups: \\["${group}"\\], resources: \\["${resource}"\\], verbs: \\[[^\\]]*"${verb}"`;
    await plane.logged(new RegExp(`add to the ClusterRole of this account: ${rule}`));
    await grant(`${verb}-${resource}`.replace("/", "."), { apiGroups: [group], resources: [resource], verbs: [verb] });
  }

  test("the key of the mesh cannot be kept", async () => {
    await isNamedAndGiven("", "secrets", "create");
    await plane.ready();
  });

  test("no leader can be elected", async () => {
    await isNamedAndGiven("coordination.k8s.io", "leases", "create");
    await isNamedAndGiven("coordination.k8s.io", "leases", "update");
    await plane.logged(/elected as leader/);
  });

  test("the leader cannot write what it has to", async () => {
    await isNamedAndGiven("", "configmaps", "create");
    const map = ["get", "configmap", "istio-ca-root-cert", "-o", "name"];
    await eventually("the root", async () => (await server.kubectl(map).catch(() => "")) !== "");
    await isNamedAndGiven("admissionregistration.k8s.io", "mutatingwebhookconfigurations", "patch");
    await isNamedAndGiven("networking.istio.io", "serviceentries/status", "patch");
    const status = ["get", "serviceentry", "outside", "-o", "jsonpath={.status.addresses[*].value}"];
    await eventually("an address", async () => (await server.kubectl(status)).includes("240.240."));
  });
});
