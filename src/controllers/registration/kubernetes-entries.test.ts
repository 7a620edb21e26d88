import assert from "node:assert/strict";
import { test } from "node:test";
import { type ApiCall, ApiError } from "#lib/kubernetes/api-client.ts";
import { kubernetesEntries } from "./kubernetes-entries.ts";
import type { EntryObject } from "./registered-entry.ts";

const ENTRY: EntryObject = {
  kind: "WorkloadEntry",
  metadata: {
    name: "vms-10.0.0.1",
    namespace: "default",
    labels: { app: "web" },
    annotations: { a: "1", b: "2" },
    createdAt: 0,
    controller: { kind: "WorkloadGroup", name: "vms" },
  },
  spec: { address: "10.0.0.1" },
  origin: undefined,
};
const BASE = "/apis/networking.istio.io/v1/namespaces/default";
const PATH = `${BASE}/workloadentries/vms-10.0.0.1`;

/** Notes the calls; each of the failing methods is refused with its status. */
function fakeApi(failing: Readonly<Record<string, number>> = {}) {
  const calls: ApiCall[] = [];
  const call = async <Answer>(asked: ApiCall): Promise<Answer> => {
    calls.push(asked);
    const status = failing[asked.method ?? "GET"];
    if (status !== undefined) throw new ApiError("refused", { status, reason: "" });
    return { metadata: { name: "vms", uid: "u1" } } as Answer;
  };
  return { calls, entries: kubernetesEntries({ call }) };
}

test("a new entry is created below its group", async () => {
  const { calls, entries } = fakeApi();
  await entries.put(ENTRY, undefined);
  assert.deepEqual(calls[0]?.path, `${BASE}/workloadgroups/vms`);
  const owner = {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadGroup",
    name: "vms",
    uid: "u1",
    controller: true,
  };
  const { name, namespace, labels, annotations } = ENTRY.metadata;
  assert.deepEqual(calls[1], {
    method: "POST",
    path: `${BASE}/workloadentries`,
    body: {
      apiVersion: "networking.istio.io/v1",
      kind: "WorkloadEntry",
      metadata: { name, namespace, labels, annotations, ownerReferences: [owner] },
      spec: { address: "10.0.0.1" },
    },
  });
  assert.equal(calls.length, 2);
});

test("of an entry that is there only what differs is changed", async () => {
  const { calls, entries } = fakeApi();
  const next = {
    ...ENTRY,
    metadata: { ...ENTRY.metadata, annotations: { a: "1", c: "3" } },
    status: { conditions: [{ type: "Healthy", status: "True" }] },
  };
  await entries.put(next, ENTRY);
  assert.deepEqual(
    calls.map(({ method, path, body }) => [method, path, body]),
    [
      ["PATCH", PATH, { metadata: { annotations: { c: "3", b: null } } }],
      ["PATCH", `${PATH}/status`, { status: next.status }],
    ],
  );
  calls.length = 0;
  await entries.put(next, next);
  assert.deepEqual(calls, []);
});

test("an entry that is gone, or there already, is as good as done; other refusals are not", async () => {
  await fakeApi({ DELETE: 404 }).entries.remove(ENTRY);
  await fakeApi({ POST: 409 }).entries.put(ENTRY, undefined);
  await assert.rejects(fakeApi({ DELETE: 403 }).entries.remove(ENTRY), /refused/);
  await assert.rejects(fakeApi({ POST: 403 }).entries.put(ENTRY, undefined), /refused/);
});
