import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import {
  HttpConnectionManager_ForwardClientCertDetails as ForwardClientCert,
  HttpConnectionManagerSchema,
  HttpConnectionManager_ServerHeaderTransformation as ServerHeader,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { type ProxyOptions, proxyOf } from "../../../test/support/mesh.ts";
import { unpacked } from "../../../test/support/translated.ts";
import { traitsOf } from "../traits/traits.ts";
import { type HttpConnectionManagerInput, httpConnectionManager } from "./http-connection-manager.ts";

type Options = Partial<HttpConnectionManagerInput> & {
  readonly proxy?: ProxyOptions;
  readonly config?: MeshConfig["defaultConfig"];
};
function managerOf({ proxy, config = {}, ...input }: Options) {
  const mesh = input.mesh ?? { ...DEFAULT_MESH_CONFIG, defaultConfig: config };
  const traits = traitsOf(mesh, proxyOf(proxy));
  const filter = httpConnectionManager({
    class: "inbound",
    statPrefix: "test",
    routes: "80",
    protocol: "HTTP",
    traits: traits.http,
    ...input,
    mesh,
  });
  return unpacked(
    HttpConnectionManagerSchema,
    filter.configType.case === "typedConfig" ? filter.configType.value : undefined,
  );
}
const filtersOf = (options: Options) =>
  managerOf(options).httpFilters.map(({ name }) => name.replace(/^envoy.filters.http./, ""));

test("the router is the last filter, and filters of Istio's Envoy are for it alone", () => {
  assert.deepEqual(filtersOf({}), ["grpc_stats", "fault", "cors", "router"]);
  assert.deepEqual(filtersOf({ protocol: "GRPC-Web" })[0], "grpc_web");
  const extensions = ["istio.alpn", "envoy.filters.http.peer_metadata", "envoy.filters.network.metadata_exchange"];
  const own = ["istio.metadata_exchange", "grpc_stats", "istio.alpn", "fault", "cors", "router"];
  assert.deepEqual(filtersOf({ class: "outbound", proxy: { extensions } }), own);
  assert.ok(!filtersOf({ class: "inbound", proxy: { extensions } }).includes("istio.alpn"));
});

test("who called is told to the application: added by sidecars, written anew by gateways, left alone towards services", () => {
  assert.equal(managerOf({ class: "inbound" }).forwardClientCertDetails, ForwardClientCert.APPEND_FORWARD);
  assert.equal(managerOf({ class: "gateway" }).forwardClientCertDetails, ForwardClientCert.SANITIZE_SET);
  assert.equal(managerOf({ class: "outbound" }).setCurrentClientCertDetails, undefined);
  const config = { gatewayTopology: { forwardClientCertDetails: "FORWARD_ONLY" as const, numTrustedProxies: 2 } };
  const gateway = managerOf({ class: "gateway", config });
  assert.equal(gateway.forwardClientCertDetails, ForwardClientCert.FORWARD_ONLY);
  assert.equal(gateway.setCurrentClientCertDetails, undefined);
  assert.equal(gateway.xffNumTrustedHops, 2);
});

test("only gateways trust the address that they see", () => {
  assert.equal(managerOf({ class: "gateway" }).useRemoteAddress?.valueOf(), true);
  assert.equal(managerOf({ class: "inbound" }).useRemoteAddress?.valueOf(), false);
});

test("headers of the proxy can be turned off", () => {
  const server = (given: object) => managerOf({ config: { proxyHeaders: { server: given } } });
  assert.equal(managerOf({}).serverName, "istio-envoy");
  assert.equal(server({ value: "mine" }).serverName, "mine");
  assert.equal(server({ value: "a\nb" }).serverName, "istio-envoy");
  assert.equal(server({ disabled: true }).serverHeaderTransformation, ServerHeader.PASS_THROUGH);
  assert.equal(managerOf({ config: { proxyHeaders: { requestId: { disabled: true } } } }).generateRequestId, false);
});

test("paths are normalized as the mesh says", () => {
  const normalized = (normalization: "NONE" | "BASE" | "MERGE_SLASHES" | "DECODE_AND_MERGE_SLASHES") => {
    const mesh = { ...DEFAULT_MESH_CONFIG, pathNormalization: { normalization } };
    const { normalizePath, mergeSlashes } = managerOf({ mesh });
    return [normalizePath, mergeSlashes];
  };
  assert.deepEqual(normalized("NONE"), [false, false]);
  assert.deepEqual(normalized("BASE"), [true, false]);
  assert.deepEqual(normalized("MERGE_SLASHES"), [true, true]);
  assert.deepEqual(normalized("DECODE_AND_MERGE_SLASHES"), [true, true]);
});

test("node metadata sets the idle timeout, and lets HTTP/1.0 in", () => {
  const manager = managerOf({ proxy: { metadata: { IDLE_TIMEOUT: "30s", HTTP10: "1" } } });
  assert.equal(manager.commonHttpProtocolOptions?.idleTimeout?.seconds, 30n);
  assert.equal(manager.httpProtocolOptions?.acceptHttp10, true);
});
