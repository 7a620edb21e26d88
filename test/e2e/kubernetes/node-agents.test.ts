/** Which workloads an agent of a node may act for, by a real API server. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { tokenReviewAuthenticator } from "#authn/token-review.ts";
import { impersonationRefusal } from "#ca/service/node-agents.ts";
import { nodePods } from "#control-plane/node-pods.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import type { Caller } from "#model/ports.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const pod = (name: string, serviceAccountName: string, nodeName: string) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: { serviceAccountName, nodeName, containers: [{ name: "c", image: "none" }] },
  });

describe("agents of nodes", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let api: KubernetesApi;
  before(async () => {
    server = await startApiServer({ controllers: true });
    api = await server.api();
  });
  after(() => server?.[Symbol.asyncDispose]());

  /** Who a token of the pod proves its holder to be. */
  async function callerOf(account: string, name: string): Promise<Caller> {
    const { metadata } = await api.call({ path: `/api/v1/namespaces/default/pods/${name}` });
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name, uid: (metadata as { readonly uid: string }).uid };
    const { status } = await api.call({
      method: "POST",
      path: `/api/v1/namespaces/default/serviceaccounts/${account}/token`,
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        spec: { audiences: ["istio-ca"], boundObjectRef },
      },
    });
    const authenticate = tokenReviewAuthenticator({ api, audiences: ["istio-ca"], trustDomain: () => "cluster.local" });
    const authorization = `Bearer ${(status as { readonly token: string }).token}`;
    const result = await authenticate({ authorization, certificate: undefined });
    assert.ok(result !== undefined && "caller" in result, JSON.stringify(result));
    return result.caller;
  }

  test("act for the workloads of their own node, while their pod is there", async () => {
    for (const account of ["ztunnel", "web", "other"]) await server.kubectl(["create", "serviceaccount", account]);
    await eventually("the account", async () => (await server.kubectl(["get", "serviceaccounts"])).includes("web"));
    await server.apply(pod("ztunnel-a", "ztunnel", "node-a"));
    await server.apply(pod("web-a", "web", "node-a"));
    await server.apply(pod("other-b", "other", "node-b"));
    const agents = { trustedAccounts: ["default/ztunnel"], pods: nodePods(api) };
    const refusal = (caller: Caller, account: string) =>
      impersonationRefusal(caller, `spiffe://cluster.local/ns/default/sa/${account}`, agents);
    const agent = await callerOf("ztunnel", "ztunnel-a");
    assert.equal(await refusal(agent, "web"), undefined);
    assert.match((await refusal(agent, "other")) ?? "", /no pods of "default\/other" on the node "node-a"/);
    assert.match((await refusal(await callerOf("web", "web-a"), "other")) ?? "", /not allowed/);
    await server.kubectl(["delete", "pod", "ztunnel-a", "--force", "--grace-period=0"]);
    assert.match((await refusal(agent, "web")) ?? "", /pod default\/ztunnel-a not found/);
    await server.apply(pod("ztunnel-a", "ztunnel", "node-a"));
    assert.match((await refusal(agent, "web")) ?? "", /UID does not match/);
  });
});
