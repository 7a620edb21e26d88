import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChangeRecord, PushRecord } from "#model/push-record.ts";
import { conditionsOf, joinedDistribution, localDistribution } from "./distribution.ts";
import { statusWith } from "./object-status.ts";

const WEB = "VirtualService/default/web";

function change(id: number, ...objects: string[]): ChangeRecord {
  return { id, changedAt: 0, releasedAt: 0, objects: objects.map((name) => `~ ${name}`), objectCount: objects.length };
}

function push(node: string, of: number, more: Partial<PushRecord> = {}): PushRecord {
  const sizes = { resources: 1, removed: 0, bytes: 1 };
  return { change: of, at: 0, node, type: "rds", view: "v", ...sizes, result: "acknowledged", ...more };
}

function local(changes: readonly ChangeRecord[], pushes: readonly PushRecord[], nodes = ["a", "b"]) {
  return localDistribution({ changes: () => changes, pushes: () => pushes }, new Set(nodes));
}

test("proxies that have not answered are behind, those that left do not count", () => {
  const found = local(
    [change(1, WEB)],
    [push("a", 1), push("b", 1, { result: "sent" }), push("c", 1, { result: "sent" })],
  );
  assert.deepEqual(found, { proxies: 2, lags: { [WEB]: { pending: 1, rejected: 0, error: "" } } });
});

test("a refusal counts until the object changes", () => {
  const refusal = push("a", 1, { result: "rejected", culprits: ["80", WEB], error: "no such host" });
  const refused = local([change(1, WEB)], [refusal, push("a", 1)]);
  assert.deepEqual(refused.lags[WEB], { pending: 0, rejected: 1, error: "no such host" });
  assert.deepEqual(local([change(1, WEB), change(2, WEB)], [refusal, push("a", 2)]).lags[WEB], undefined);
});

test("what all replicas know is one condition, and a second one for refusals", () => {
  const [one, two] = [
    { proxies: 2, lags: { [WEB]: { pending: 1, rejected: 0, error: "" } } },
    { proxies: 3, lags: { [WEB]: { pending: 0, rejected: 1, error: "bad" } } },
  ];
  const all = joinedDistribution([one, two]);
  const shown = (object: string, invalid?: string) =>
    conditionsOf(object, all, { invalid }).map(({ type, status, reason, message }) => [type, status, reason, message]);
  assert.deepEqual(shown(WEB), [
    ["Reconciled", "False", "Rejected", "3/5 proxies up to date."],
    ["Rejected", "True", "NACK", "1/5 proxies rejected it and keep what they had: bad"],
  ]);
  assert.deepEqual(shown("Gateway/default/g"), [["Reconciled", "True", "Distributed", "5/5 proxies up to date."]]);
  assert.match(shown(WEB, "hosts must be set").join(), /Invalid.*hosts must be set/);
  assert.deepEqual(shown("__proto__"), [["Reconciled", "True", "Distributed", "5/5 proxies up to date."]]);
});

test("statusWith() leaves others' conditions alone, keeps the time of what stays, and writes nothing twice", () => {
  const conditions = conditionsOf(WEB, { proxies: 1, lags: {} });
  const other = { type: "Healthy", status: "True" };
  const metadata = { name: "web", generation: 2 };
  const first = statusWith({ metadata, status: { conditions: [other] } }, { conditions }, "T1");
  assert.deepEqual(first, {
    conditions: [other, { ...conditions[0], lastTransitionTime: "T1", lastProbeTime: "T1" }],
    observedGeneration: 2,
  });
  assert.equal(statusWith({ metadata, status: first }, { conditions }, "T2"), undefined);
  const next = statusWith({ metadata: { ...metadata, generation: 3 }, status: first }, { conditions }, "T3");
  assert.match(JSON.stringify(next), /"lastTransitionTime":"T1".*"observedGeneration":3/);
});

test("a claim that another object has is a condition, with the proxies counted", () => {
  const conflict = {
    metric: "pilot_vservice_dup_domain",
    what: 'host "a"',
    winner: "VirtualService/default/older",
    loser: WEB,
    loserNamespace: "default",
    outcome: "its routes are not used",
  } as const;
  const [, condition] = conditionsOf(WEB, { proxies: 5, lags: {} }, { conflicts: [conflict] });
  assert.deepEqual(condition, {
    type: "Conflicted",
    status: "True",
    reason: "Conflict",
    message: 'host "a" is taken by VirtualService/default/older: its routes are not used (1 in all, 5 proxies)',
  });
});

test("statusWith() writes messages of analysis once, takes them back, and leaves silent objects alone", () => {
  const message = { type: { code: "IST0101" }, level: "ERROR", documentationUrl: "https://x" };
  const metadata = { name: "web", generation: 2 };
  const conditions = [{ type: "Healthy", status: "True" }];
  const first = statusWith({ metadata, status: { conditions } }, { messages: [message] }, "T1");
  assert.deepEqual(first, { validationMessages: [message], observedGeneration: 2 });
  assert.equal(statusWith({ metadata, status: first }, { messages: [message] }, "T2"), undefined);
  assert.deepEqual(statusWith({ metadata, status: first }, { messages: [] }, "T3"), {
    validationMessages: [],
    observedGeneration: 2,
  });
  assert.equal(statusWith({ metadata }, { messages: [] }, "T4"), undefined);
});
