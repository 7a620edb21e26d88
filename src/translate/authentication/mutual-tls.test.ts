import assert from "node:assert/strict";
import { test } from "node:test";
import { toJson } from "@bufbuild/protobuf";
import {
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from "#gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.ts";
import { meshOf, proxyOf } from "../../../test/support/mesh.ts";
import { object, service, workload } from "../../../test/support/objects.ts";
import { translated, unpacked } from "../../../test/support/translated.ts";

const MESH =
  service("web", { name: "http", port: 80 }) +
  workload("web-1", "10.0.0.1") +
  object("PeerAuthentication", "default", { mtls: { mode: "STRICT" } });

/** Names of the secrets that its server takes, and of those that its client takes. */
function secrets(metadata: Readonly<Record<string, string>>) {
  const { listener, cluster } = translated(meshOf(MESH), proxyOf({ ip: "10.0.0.1", labels: { app: "web" }, metadata }));
  const chain = listener("virtualInbound").filterChains.find(({ transportSocket }) => transportSocket !== undefined);
  const server = chain?.transportSocket?.configType;
  assert.ok(server?.case === "typedConfig");
  const { transportSocket, transportSocketMatches } = cluster("outbound|80||web.default.svc.cluster.local");
  const client = (transportSocket ?? transportSocketMatches[0]?.transportSocket)?.configType;
  assert.ok(client?.case === "typedConfig");
  const named = (json: unknown) =>
    [...JSON.stringify(json).matchAll(/"name":"([^"]*)"/g)].map(([, name]) => name).sort();
  return {
    server: named(toJson(DownstreamTlsContextSchema, unpacked(DownstreamTlsContextSchema, server.value))),
    client: named(toJson(UpstreamTlsContextSchema, unpacked(UpstreamTlsContextSchema, client.value))),
    isPerEndpoint: transportSocketMatches.length > 0,
  };
}

const OWN = ["ROOTCA", "default"];

test("a workload shows and trusts what the agent has for it", () => {
  assert.deepEqual(secrets({}), { server: OWN, client: OWN, isPerEndpoint: true });
});

test("files of TLS_SERVER_* take the place of what a server shows and trusts, each for itself", () => {
  const certificate = { TLS_SERVER_CERT_CHAIN: "/chain", TLS_SERVER_KEY: "/key" };
  const roots = { TLS_SERVER_ROOT_CERT: "/roots" };
  assert.deepEqual(secrets({ ...certificate, ...roots }).server, ["file-cert:/chain~/key", "file-root:/roots"]);
  assert.deepEqual(secrets(certificate).server, ["ROOTCA", "file-cert:/chain~/key"]);
  assert.deepEqual(secrets(roots).server, ["default", "file-root:/roots"]);
  assert.deepEqual(secrets({ TLS_SERVER_CERT_CHAIN: "/chain" }).server, OWN);
});

test("a client with files of TLS_CLIENT_* shows them to every endpoint", () => {
  const files = { TLS_CLIENT_CERT_CHAIN: "/chain", TLS_CLIENT_KEY: "/key", TLS_CLIENT_ROOT_CERT: "/roots" };
  assert.deepEqual(secrets(files), {
    server: OWN,
    client: ["file-cert:/chain~/key", "file-root:/roots"],
    isPerEndpoint: false,
  });
});
