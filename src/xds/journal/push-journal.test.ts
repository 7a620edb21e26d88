import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../../test/support/ads-fixture.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../../test/support/xds-client.ts";
import { PushJournal } from "./push-journal.ts";
import { snapshotChanges } from "./snapshot-changes.ts";

const service = (name: string, port: number) => `
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: default}
spec: {clusterIP: 10.0.0.9, ports: [{name: http, port: ${port}}]}
---`;
const rule = (name: string) => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: ${name}, namespace: default}
spec: {host: a}
---`;

test("snapshotChanges() names what came, changed and went", () => {
  const before = meshOf(service("a", 80) + rule("one"));
  const after = meshOf(service("a", 81) + rule("two"), { previous: before });
  assert.deepEqual(snapshotChanges(before, after), [
    "+ DestinationRule/default/two",
    "- DestinationRule/default/one",
    "~ Service/default/a.default.svc.cluster.local",
  ]);
  assert.deepEqual(snapshotChanges(after, after), []);
});

test("the journal holds the latest changes and pushes only", () => {
  const journal = new PushJournal();
  const [one, two] = [meshOf(""), meshOf(rule("one"))];
  for (let at = 0; at <= 1_000; at++) journal.released(at % 2 === 0 ? one : two, { changedAt: at, releasedAt: at });
  assert.deepEqual(
    [journal.changes().length, journal.changes()[0]?.id, journal.changes().at(-1)?.id],
    [200, 801, 1000],
  );
  const push = { node: "n", type: "cds", view: "v", resources: 1, removed: 0, bytes: 1 };
  for (let at = 0; at < 6_000; at++) journal.sent(push, at);
  assert.deepEqual([journal.pushes().length, journal.pushes()[0]?.at], [5_000, 1_000]);
});

test("pushes are told with their change, size and what became of them", async () => {
  const journal = new PushJournal();
  await using ads = await startAds({ all: { [CLUSTER_TYPE]: { a: "1" } } }, { journal });
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  ads.set({ all: { [CLUSTER_TYPE]: { a: "2" } } });
  client.reject(await client.next(CLUSTER_TYPE), "a is bad");
  while (journal.pushes()[1]?.result !== "rejected") await new Promise((resolve) => setImmediate(resolve));
  const [first, second] = journal.pushes();
  assert.deepEqual([first?.change, first?.result, first?.resources], [0, "acknowledged", 1]);
  assert.deepEqual([second?.change, second?.error, second?.culprits], [1, "a is bad", ["a"]]);
  assert.equal(first?.view, second?.view);
  assert.ok((second?.bytes ?? 0) > 0 && (second?.answeredAfter ?? -1) >= 0);
});
