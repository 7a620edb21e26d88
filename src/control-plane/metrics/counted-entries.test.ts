import assert from "node:assert/strict";
import { test } from "node:test";
import { countedEntries, type RegistrationCounter } from "./counted-entries.ts";

function entry(annotations: Readonly<Record<string, string>>) {
  const metadata = { name: "vm-1", namespace: "default", labels: {}, annotations, createdAt: 0 };
  return { kind: "WorkloadEntry", metadata, spec: { address: "10.0.0.1" }, origin: undefined };
}

test("workloads that come, come back, go and do not return are counted; their health is not", async () => {
  const counted: RegistrationCounter[] = [];
  const nothing = { put: async () => undefined, remove: async () => undefined };
  const entries = countedEntries(nothing, (name) => counted.push(name));
  const came = entry({ "istio.io/connectedAt": "1" });
  const left = entry({ "istio.io/connectedAt": "1", "istio.io/disconnectedAt": "2" });
  const back = entry({ "istio.io/connectedAt": "3" });
  await entries.put(came, undefined);
  await entries.put(came, came);
  await entries.put(left, came);
  await entries.put(back, left);
  await entries.remove(left);
  assert.deepEqual(counted, [
    "auto_registration_success_total",
    "auto_registration_unregister_total",
    "auto_registration_updates_total",
    "auto_registration_deletes_total",
  ]);
});

test("an entry that cannot be written is an error, and stays one", async () => {
  const counted: RegistrationCounter[] = [];
  const put = () => Promise.reject(new Error("refused"));
  const entries = countedEntries({ put, remove: put }, (name) => counted.push(name));
  await assert.rejects(entries.put(entry({}), undefined), /refused/);
  assert.deepEqual(counted, ["auto_registration_errors_total"]);
});
