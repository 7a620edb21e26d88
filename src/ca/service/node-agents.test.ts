import assert from "node:assert/strict";
import { test } from "node:test";
import type { Caller } from "#model/ports.ts";
import { impersonationRefusal, type NodePods } from "./node-agents.ts";

const AGENT: Caller = {
  identity: "spiffe://cluster.local/ns/istio-system/sa/ztunnel",
  namespace: "istio-system",
  serviceAccount: "ztunnel",
  provedBy: "jwt",
  pod: "ztunnel-a",
  podUid: "1",
};
const asked: unknown[] = [];
const pods: NodePods = {
  pod: async (namespace, name) =>
    namespace === "istio-system" && name === "ztunnel-a"
      ? { uid: "1", serviceAccount: "ztunnel", node: "node-a" }
      : undefined,
  runs: async (account) => {
    asked.push(account);
    return account.namespace === "a" && account.serviceAccount === "web" && account.node === "node-a";
  },
};
const WEB = "spiffe://cluster.local/ns/a/sa/web";
const refusal = (caller: Partial<Caller>, wanted = WEB, trustedAccounts = ["istio-system/ztunnel"]) =>
  impersonationRefusal({ ...AGENT, ...caller }, wanted, { trustedAccounts, pods });

test("an agent on the list acts for workloads of its node", async () => {
  assert.equal(await refusal({}), undefined);
});

for (const [what, result, reason] of [
  ["an account that is not on the list", () => refusal({ serviceAccount: "web" }), /not allowed to impersonate/],
  ["everybody without a list", () => refusal({}, WEB, []), /not allowed to impersonate/],
  ["what is no identity", () => refusal({}, "web"), /failed to validate/],
  ["an identity that is a question", () => refusal({}, "spiffe://x/ns/a,b/sa/web"), /failed to validate/],
  ["a workload of another node", () => refusal({}, "spiffe://x/ns/a/sa/other"), /no pods of "a\/other" on/],
  ["an agent without a pod", () => refusal({ pod: "" }), /not found/],
  ["an agent whose pod is gone", () => refusal({ pod: "ztunnel-b" }), /pod istio-system\/ztunnel-b not found/],
  ["an agent whose pod was made again", () => refusal({ podUid: "2" }), /UID does not match/],
] as const) {
  test(`refuses ${what}`, async () => assert.match((await result()) ?? "allowed", reason));
}
