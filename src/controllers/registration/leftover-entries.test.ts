import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { SILENT } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import { removeOnce } from "./leftover-entries.ts";
import type { EntryObject } from "./registered-entry.ts";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const at = (secondsAgo: number) => new Date(NOW - secondsAgo * 1000).toISOString();

function object(kind: string, name: string, namespace: string, annotations = {}): ConfigObject {
  const metadata = { name, namespace, labels: {}, annotations, createdAt: 0 };
  return { kind, metadata, spec: { address: "10.0.0.1" }, origin: undefined };
}

const entry = (name: string, annotations: Readonly<Record<string, string>>) =>
  object("WorkloadEntry", name, "vms", { "istio.io/autoRegistrationGroup": "g", ...annotations });
const pod = (name: string) => object("Pod", name, "istio-system");

/** What was written: `name` removed, or its annotations. */
async function look(objects: readonly ConfigObject[]): Promise<readonly string[]> {
  const written: string[] = [];
  const source = { objects: () => objects } as Source;
  const put = async ({ metadata }: EntryObject) => {
    const { "istio.io/connectedAt": here, "istio.io/disconnectedAt": left } = metadata.annotations;
    written.push(`${metadata.name} here=${here} left=${left}`);
  };
  const remove = async ({ metadata }: EntryObject) => void written.push(`${metadata.name} removed`);
  const where = { namespace: "istio-system", podName: "istiod-1", graceMs: 10_000, now: () => NOW, log: SILENT };
  await removeOnce({ source, entries: { put, remove }, ...where });
  return written;
}

test("entries of workloads that left long ago go, the others stay", async () => {
  const written = await look([
    entry("old", { "istio.io/disconnectedAt": at(11) }),
    entry("recent", { "istio.io/disconnectedAt": at(9) }),
    entry("garbage", { "istio.io/disconnectedAt": "yesterday" }),
    object("WorkloadEntry", "by-hand", "vms"),
  ]);
  assert.deepEqual(written, ["old removed"]);
});

test("a workload whose control plane is gone has left, and has its grace period", async () => {
  const connected = (controller: string) => ({
    "istio.io/workloadController": controller,
    "istio.io/connectedAt": at(60),
  });
  const objects = [entry("orphan", connected("istiod-0")), entry("well", connected("istiod-2"))];
  const pods = [pod("istiod-1"), pod("istiod-2")];
  assert.deepEqual(await look([...objects, ...pods]), [`orphan here=undefined left=${at(0)}`]);
  assert.deepEqual(await look(objects), [], "where no pods are known, nobody is gone");
});
