import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { ClientConfigSchema, ConfigStatus } from "#gen/envoy/service/status/v3/csds_pb.ts";
import type { Caller, ConnectedProxy } from "#model/ports.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import { meshOf, proxyOf } from "../../test/support/mesh.ts";
import { statusMessages } from "./status-messages.ts";

function connected(name: string, namespace: string, settings: object | undefined = {}): ConnectedProxy {
  const proxy = proxyOf({ name, namespace });
  return {
    connectionId: "1",
    nodeId: proxy.nodeId,
    address: "10.0.0.1:1",
    proxy: { ...proxy, metadata: { ...proxy.metadata, NAMESPACE: namespace, PROXY_CONFIG: settings } },
    connectedAt: 0,
    istioVersion: "1.29.6",
    types: new Map([
      [CLUSTER_TYPE, { sent: "b", acknowledged: "b", rejected: "", sentAt: 1_500.75 }],
      [ENDPOINT_TYPE, { sent: "b", acknowledged: "a", rejected: "", sentAt: 1 }],
      [LISTENER_TYPE, { sent: "b", acknowledged: "a", rejected: "no such filter", sentAt: 1 }],
      [ROUTE_TYPE, { sent: "", acknowledged: "", rejected: "" }],
    ]),
    resources: () => [],
  };
}

function caller(namespace: string): Caller {
  return { identity: "", namespace, serviceAccount: "", provedBy: "jwt" };
}

const STATE = {
  source: { current: () => meshOf(""), objects: () => [] },
  connections: () => [
    connected("web", "shop"),
    connected("db", "other"),
    { ...connected("ctl", "shop"), proxy: proxyOf() },
  ],
  pushes: { changes: () => [], pushes: () => [] },
  held: () => ({ parts: 0, resources: 0 }),
  seesAll: (namespace: string) => namespace === "istio-system",
};

test("statusMessages() tells of each type whether the proxy has it", () => {
  const [message, ...others] = statusMessages({ page: "syncz", names: [] }, caller("shop"), STATE);
  assert.ok(message);
  assert.deepEqual(others, [], "other namespaces, and programs that only ask, are left out");
  assert.equal(message.name, "web.shop");
  const { node, genericXdsConfigs } = fromBinary(ClientConfigSchema, message.value);
  assert.equal(node?.id, "web.shop");
  assert.equal(node?.metadata?.NAMESPACE, "shop");
  const byType = new Map(genericXdsConfigs.map((config) => [config.typeUrl, config]));
  const statusOf = (typeUrl: string) => byType.get(typeUrl)?.configStatus;
  assert.equal(statusOf(CLUSTER_TYPE), ConfigStatus.SYNCED);
  assert.equal(statusOf(ENDPOINT_TYPE), ConfigStatus.STALE);
  assert.equal(statusOf(LISTENER_TYPE), ConfigStatus.ERROR);
  assert.equal(statusOf(ROUTE_TYPE), ConfigStatus.NOT_SENT);
  assert.equal(byType.get(LISTENER_TYPE)?.errorState?.details, "no such filter");
  assert.equal(byType.get(CLUSTER_TYPE)?.lastUpdated?.seconds, 1n);
});

test("statusMessages() shows all namespaces to callers of the root namespace", () => {
  assert.equal(statusMessages({ page: "syncz", names: [] }, caller("istio-system"), STATE).length, 2);
});

test("statusMessages() dumps one proxy, and nothing of one that is not here or not the caller's", () => {
  const dump = (names: readonly string[], namespace = "shop") =>
    statusMessages({ page: "config_dump", names }, caller(namespace), STATE).map(({ typeUrl }) =>
      typeUrl.split(".").at(-1),
    );
  assert.ok(dump(["web.shop"]).includes("ClustersConfigDump"));
  assert.deepEqual(dump(["web.shop"], "other"), []);
  assert.deepEqual(dump(["nobody.shop"]), []);
  assert.deepEqual(dump([]), []);
  assert.deepEqual(dump(["web.shop", "db.other"]), []);
});
