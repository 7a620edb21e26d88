import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { tokenReviewAuthenticator } from "#authn/token-review.ts";
import { impersonationRefusal } from "#ca/service/node-agents.ts";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { nodePods } from "#control-plane/node-pods.ts";
import { keepNamespaceMaps, ROOT_MAP } from "#controllers/namespace-maps.ts";
import { keepWebhookBundles } from "#controllers/webhook-bundles.ts";
import { ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { leadWhenElected } from "#lib/kubernetes/leader-election.ts";
import { createLogger } from "#lib/log/log.ts";
import type { Caller } from "#model/ports.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { webhookConfigurations } from "../../support/kubernetes/webhook-configurations.ts";

const log = createLogger({ write: () => {} });

describe("what the control plane does in Kubernetes", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let api: KubernetesApi;
  before(async () => {
    server = await startApiServer({ controllers: true });
    api = await server.api();
  });
  after(() => server?.[Symbol.asyncDispose]());

  async function rootOf(namespace: string): Promise<unknown> {
    try {
      const map = await api.call({ path: `/api/v1/namespaces/${namespace}/configmaps/istio-ca-root-cert` });
      return (map.data as Record<string, unknown>)["root-cert.pem"];
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) return undefined;
      throw problem;
    }
  }

  async function untilRoot(namespace: string, wanted: string | undefined): Promise<void> {
    await eventually(`root of ${namespace}`, async () => (await rootOf(namespace)) === wanted);
  }

  test("each namespace of the mesh has the roots, whatever happens to them", async ({ signal }) => {
    let roots = "ONE";
    let changed = () => {};
    void keepNamespaceMaps(
      {
        api,
        log,
        map: ROOT_MAP,
        text: () => roots,
        onText: (call) => {
          changed = call;
          return () => {};
        },
        isOurs: ({ metadata }: RawObject) => metadata.labels?.outside === undefined,
        onOurs: () => () => {},
      },
      signal,
    );
    await untilRoot("default", "ONE");
    await server.kubectl(["create", "namespace", "shop"]);
    await untilRoot("shop", "ONE");
    await server.kubectl(["-n", "shop", "delete", "configmap", "istio-ca-root-cert"]);
    await untilRoot("shop", "ONE");
    const spoiled = JSON.stringify({ data: { "root-cert.pem": "MINE" } });
    await server.kubectl(["-n", "shop", "patch", "configmap", "istio-ca-root-cert", "--type=merge", "-p", spoiled]);
    await untilRoot("shop", "ONE");
    roots = "TWO";
    changed();
    await untilRoot("shop", "TWO");
    await untilRoot("default", "TWO");
    await server.kubectl(["label", "namespace", "shop", "outside=true"]);
    await untilRoot("shop", undefined);
    await server.kubectl(["delete", "namespace", "shop"]);
    assert.equal(await rootOf("kube-public"), undefined);
    await untilRoot("kube-system", "TWO");
  });

  test("webhooks of our revision believe our roots, and those of others are left alone", async ({ signal }) => {
    let roots = "ONE";
    let changed = () => {};
    const onRoots = (call: () => void) => {
      const before = changed;
      changed = () => {
        before();
        call();
      };
      return () => {};
    };
    void keepWebhookBundles(
      { api, log, roots: () => roots, onRoots, namespace: "default", revision: "default" },
      signal,
    );
    for (const revision of ["", "canary"]) {
      const { injection, validation } = await webhookConfigurations(`revision=${revision}`);
      for (const object of [...injection, ...validation]) await server.apply(JSON.stringify(object));
    }
    const webhooks = async (path: string) => {
      const { webhooks: list } = await api.call({ path: `/apis/admissionregistration.k8s.io/v1/${path}` });
      return list as { clientConfig: { caBundle?: string }; failurePolicy: string }[];
    };
    const injection = "mutatingwebhookconfigurations/istio-sidecar-injector";
    const validation = "validatingwebhookconfigurations/istio-validator";
    const have = async (path: string, text: string) =>
      (await webhooks(path)).every(
        ({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? "", "base64").toString() === text,
      );
    await eventually("injection", () => have(injection, "ONE"));
    await eventually("validation", () => have(`${validation}-istio-system`, "ONE"));
    assert.equal((await webhooks(`${validation}-istio-system`))[0]?.failurePolicy, "Fail");
    roots = "TWO";
    changed();
    await eventually("new roots", () => have(injection, "TWO"));
    assert.ok(await have(`${injection}-canary`, ""));
    assert.equal((await webhooks(`${validation}-canary-istio-system`))[0]?.failurePolicy, "Ignore");
    for (const type of ["mutating", "validating"])
      await server.kubectl(["delete", `${type}webhookconfigurations`, "--all"]);
  });

  test("validation that the API server does not reach holds up security objects alone, and the log says why", async ({
    signal,
  }) => {
    await server.define(customResourceDefinitions());
    const { validation } = await webhookConfigurations("revision=far");
    for (const object of validation) await server.apply(JSON.stringify(object));
    const lines: string[] = [];
    const told = createLogger({ write: (line) => lines.push(line) });
    const options = { api, log: told, roots: () => "ONE", onRoots: () => () => {}, namespace: "default" };
    void keepWebhookBundles({ ...options, revision: "far" }, signal);
    await eventually("the log", () => lines.some((line) => line.includes("does not heed validation yet")));
    assert.match(lines.join(""), /reason=.*(failed calling webhook|it stored what validation refuses)/);
    const far =
      "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/istio-validator-far-istio-system";
    const { webhooks } = await api.call<{ webhooks: { failurePolicy: string; clientConfig: { caBundle: string } }[] }>({
      path: far,
    });
    assert.deepEqual(
      webhooks.map(({ failurePolicy, clientConfig }) => [failurePolicy, atob(clientConfig.caBundle)]),
      [
        ["Ignore", "ONE"],
        ["Fail", "ONE"],
      ],
    );
    await server.kubectl(["delete", "validatingwebhookconfigurations", "--all"]);
  });

  test("one replica leads at a time; the next follows when it goes or falls silent", async ({ signal: over }) => {
    const timing = { leaseMs: 1_500, renewLimitMs: 1_000, retryMs: 100 };
    const leading = new Set<string>();
    let most = 0;
    const start = (identity: string, own: KubernetesApi) => {
      const stopping = new AbortController();
      const options = { api: own, namespace: "default", name: "test-leader", identity, log, timing };
      const lead = async (signal: AbortSignal) => {
        leading.add(identity);
        most = Math.max(most, leading.size);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        leading.delete(identity);
      };
      const running = leadWhenElected(options, lead, AbortSignal.any([over, stopping.signal]));
      return { stopping, running };
    };
    const leader = () => [...leading].join();
    const one = start("one", await server.api());
    await eventually("the first leads", () => leader() === "one");
    start("two", await server.api());
    start("three", await server.api());
    one.stopping.abort();
    await one.running;
    await eventually("another leads", () => /^(two|three)$/.test(leader()));
    server.pause("kube-apiserver", true);
    await eventually("nobody leads", () => leader() === "");
    server.pause("kube-apiserver", false);
    await eventually("another leads", () => /^(two|three)$/.test(leader()));
    assert.equal(most, 1);
  });

  test("tokens are believed that the API server believes, for our audience only", async () => {
    const authenticate = tokenReviewAuthenticator({ api, audiences: ["istio-ca"], trustDomain: () => "cluster.local" });
    const ask = async (token: string) => authenticate({ authorization: `Bearer ${token}`, certificate: undefined });
    const create = async (audience: string, ...more: string[]) =>
      (await server.kubectl(["create", "token", "default", `--audience=${audience}`, ...more])).trim();
    const token = await create("istio-ca");
    assert.deepEqual(await ask(token), {
      caller: {
        identity: "spiffe://cluster.local/ns/default/sa/default",
        namespace: "default",
        serviceAccount: "default",
        provedBy: "jwt",
      },
    });
    await server.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n");
    const bound = await create("istio-ca", "--bound-object-kind=Pod", "--bound-object-name=p");
    const answer = await ask(bound);
    assert.equal(answer !== undefined && "caller" in answer && answer.caller.pod, "p");
    await server.kubectl(["delete", "pod", "p", "--force", "--grace-period=0"]);
    // The API server remembers for ten seconds what it believed.
    await eventually("the token ends with its pod", async () => "refused" in ((await ask(bound)) ?? {}));
    for (const [wrong, reason] of [
      [await create("other"), /does not accept the token|not meant for istio-ca/],
      [`${token.slice(0, -4)}AAAA`, /does not accept the token/],
      ["garbage", /does not accept the token/],
      ["x".repeat(20_000), /more than 16384 characters/],
    ] as const) {
      const refused = await ask(wrong);
      assert.match(refused !== undefined && "refused" in refused ? refused.refused : "accepted", reason);
    }
  });

  test("tokens that are not valid yet or any more are refused with the reason, whatever our own clock says", async () => {
    const authenticate = tokenReviewAuthenticator({ api, audiences: ["istio-ca"], trustDomain: () => "cluster.local" });
    const uid = await server.kubectl(["get", "serviceaccount", "default", "-o", "jsonpath={.metadata.uid}"]);
    const account = { namespace: "default", serviceaccount: { name: "default", uid } };
    const subject = { sub: "system:serviceaccount:default:default", aud: ["istio-ca"], "kubernetes.io": account };
    const ask = async (fromSeconds: number, toSeconds: number) => {
      const now = Math.floor(Date.now() / 1000);
      const times = { iat: now + fromSeconds, nbf: now + fromSeconds, exp: now + toSeconds };
      const token = await server.tokenOf({ ...subject, ...times });
      return JSON.stringify(await authenticate({ authorization: `Bearer ${token}`, certificate: undefined }));
    };
    const hour = 3_600;
    assert.match(await ask(-hour, hour), /spiffe:/);
    // The server itself forgives a minute.
    assert.match(await ask(30, hour), /spiffe:/);
    assert.match(await ask(hour, 2 * hour), /does not accept the token/);
    assert.match(await ask(-2 * hour, -hour), /does not accept the token/);
  });

  test("agents of nodes act for the workloads of their own node only", async () => {
    const pod = (name: string, account: string, node: string) =>
      `---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${account}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: ${name}}\nspec: {serviceAccountName: ${account}, nodeName: ${node}, containers: [{name: c, image: i}]}\n`;
    const node = (name: string) => `---\napiVersion: v1\nkind: Node\nmetadata: {name: ${name}}\n`;
    await server.apply(node("node-1") + node("node-2") + pod("agent", "agent", "node-1"));
    await server.apply(pod("near", "near", "node-1") + pod("far", "far", "node-2"));
    const podUid = await server.kubectl(["get", "pod", "agent", "-o", "jsonpath={.metadata.uid}"]);
    const agent = { identity: "spiffe://cluster.local/ns/default/sa/agent", namespace: "default" };
    const caller = { ...agent, serviceAccount: "agent", provedBy: "jwt", pod: "agent", podUid } as const;
    const agents = { trustedAccounts: ["default/agent"], pods: nodePods(api) };
    const refusal = (account: string, who: Caller = caller) =>
      impersonationRefusal(who, `spiffe://cluster.local/ns/default/sa/${account}`, agents);
    assert.equal(await refusal("near"), undefined);
    assert.match((await refusal("far")) ?? "", /no pods of "default\/far" on the node "node-1"/);
    assert.match((await refusal("near", { ...caller, podUid: "another" })) ?? "", /UID does not match/);
    assert.match((await refusal("near", { ...caller, serviceAccount: "near" })) ?? "", /not allowed to impersonate/);
  });
});
