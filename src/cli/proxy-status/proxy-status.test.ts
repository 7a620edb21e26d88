import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import { formatProxyStatuses, formatProxyStatusesInFull, statusOfClient, statusOfSync } from "./proxy-status.ts";

const row = {
  proxy: "web.prod",
  cluster_id: "Kubernetes",
  istio_version: "1.29.6",
  resources: {
    [CLUSTER_TYPE]: { sent: "1", acked: "1" },
    [LISTENER_TYPE]: { sent: "2", acked: "1" },
    [ROUTE_TYPE]: { lastError: "no" },
    "my.type/X": {},
  },
};

test("a row of syncz tells the state of each type", () => {
  const status = statusOfSync(row, "istiod");
  assert.deepEqual([...status.types.values()], ["SYNCED", "STALE", "ERROR", "NOT SENT"]);
  assert.equal(status.namespace, "prod");
  assert.equal(
    formatProxyStatuses([status]),
    "NAME         CLUSTER        ISTIOD     VERSION     SUBSCRIBED TYPES\nweb.prod     Kubernetes     istiod     1.29.6      4 (CDS,LDS,RDS,my.type/X)\n",
  );
  assert.match(formatProxyStatusesInFull([status]), /NAME +CLUSTER +my\.type\/X +CDS +ECDS +EDS +LDS +RDS +ISTIOD/);
});

test("odd rows are shown as far as they say something", () => {
  for (const odd of [undefined, 5, {}, { resources: 7 }]) assert.equal(statusOfSync(odd, "i").types.size, 0);
  assert.match(formatProxyStatuses([statusOfSync({ proxy: "a.b" }, "i")]), /^a\.b .* 0$/m);
});

test("a ClientConfig tells the same, with ages", () => {
  const now = Date.parse("2026-01-02T00:00:00Z");
  const status = (configStatus: string, lastUpdated?: string) =>
    statusOfClient(
      {
        node: { id: "a.b", metadata: { CLUSTER_ID: "c", NAMESPACE: "b" } },
        genericXdsConfigs: [{ typeUrl: CLUSTER_TYPE, configStatus, ...(lastUpdated && { lastUpdated }) }],
      },
      "i",
      now,
    ).types.get(CLUSTER_TYPE);
  assert.equal(status("SYNCED"), "SYNCED");
  assert.equal(status("NOT_SENT"), "NOT SENT");
  assert.equal(status("UNKNOWN"), "IGNORED");
  assert.equal(status("STALE", "2026-01-01T23:58:01Z"), "STALE (119s)");
  assert.equal(status("STALE", "2026-01-01T23:55:00Z"), "STALE (5m)");
  assert.equal(status("STALE", "2026-01-01T21:00:30Z"), "STALE (179m)");
  assert.equal(status("STALE", "2026-01-01T17:30:00Z"), "STALE (6h30m)");
  assert.equal(status("STALE", "2025-12-28T00:00:00Z"), "STALE (5d)");
  const older = statusOfClient({ node: {}, xdsConfig: [{ status: "SYNCED", listenerConfig: {} }] }, "i", now);
  assert.deepEqual([...older.types], [[LISTENER_TYPE, "SYNCED"]]);
});
