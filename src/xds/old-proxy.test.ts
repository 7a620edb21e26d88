/** An old Envoy refuses a whole resource for one extension it does not know: it is sent none but those it lists. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { finished } from "#lib/async/steps.ts";
import { recipeBytes } from "#translate/patches/recipe-tree.ts";
import { meshOf, proxyOf } from "../../test/support/mesh.ts";
import { translatedParts } from "./parts/translated-parts.ts";

/** Types of extensions that Envoy 1.28 has. */
const OLD = new Set(
  [
    "access_loggers.file.v3.FileAccessLog",
    "access_loggers.stream.v3.StdoutAccessLog",
    "clusters.dynamic_forward_proxy.v3.ClusterConfig",
    "filters.http.cors.v3.Cors",
    "filters.http.cors.v3.CorsPolicy",
    "filters.http.fault.v3.HTTPFault",
    "filters.http.grpc_stats.v3.FilterConfig",
    "filters.http.jwt_authn.v3.JwtAuthentication",
    "filters.http.rbac.v3.RBAC",
    "filters.http.router.v3.Router",
    "filters.listener.http_inspector.v3.HttpInspector",
    "filters.listener.original_dst.v3.OriginalDst",
    "filters.listener.tls_inspector.v3.TlsInspector",
    "filters.network.http_connection_manager.v3.HttpConnectionManager",
    "filters.network.mongo_proxy.v3.MongoProxy",
    "filters.network.rbac.v3.RBAC",
    "filters.network.tcp_proxy.v3.TcpProxy",
    "request_id.uuid.v3.UuidRequestIdConfig",
    "retry.host.previous_hosts.v3.PreviousHostsPredicate",
    "transport_sockets.raw_buffer.v3.RawBuffer",
    "transport_sockets.tls.v3.DownstreamTlsContext",
    "transport_sockets.tls.v3.UpstreamTlsContext",
    "upstreams.http.v3.HttpProtocolOptions",
  ].map((name) => `envoy.extensions.${name}`),
);

const MESH = `
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: default}
spec: {selector: {app: shop}, ports: [{name: http, port: 80}, {name: tcp, port: 90}, {name: auto, port: 91, protocol: TCP}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: shop, namespace: default}
spec: {address: 10.0.0.1, labels: {app: shop}, serviceAccount: shop}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: default}
spec:
  hosts: [shop]
  http:
  - fault: {delay: {fixedDelay: 1s, percentage: {value: 1}}}
    corsPolicy: {allowOrigins: [{exact: "*"}]}
    retries: {attempts: 2, retryOn: 5xx}
    route: [{destination: {host: shop}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: shop, namespace: default}
spec: {rules: [{from: [{source: {principals: ["*"]}}]}]}
---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: shop, namespace: default}
spec: {jwtRules: [{issuer: me, jwks: '{"keys":[]}'}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: shop, namespace: default}
spec: {selector: {app: shop}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
`;

/** Extensions are named by type URLs in plain text, each behind its tag and length. */
function extensionsFor(type: "sidecar" | "router", extensions: readonly string[]): ReadonlySet<string> {
  const proxy = proxyOf({ type, labels: { app: "shop" }, envoyVersion: "1.28.0", extensions: [...extensions] });
  const parts = translatedParts(meshOf(MESH), proxy);
  const listed = [...new Set([...parts.types.values()].flat())];
  const recipes = listed.flatMap((part) => [...finished(part.plan()).values()].flat());
  const text = recipes.map((recipe) => Buffer.from(recipeBytes(recipe)).toString("latin1")).join();
  const urls = text.matchAll(/\n([\0-\x7f])(?=type\.googleapis\.com\/)/g).map(({ index, 1: length = "" }) => {
    return text.slice(index + 2, index + 2 + length.charCodeAt(0));
  });
  return new Set(urls.map((url) => url.slice(url.indexOf("/") + 1)));
}

for (const type of ["sidecar", "router"] as const) {
  test(`an old proxy that lists no extension gets none that it cannot have (${type})`, () => {
    const sent = extensionsFor(type, []);
    assert.ok(sent.size > 5, "there is something to look at");
    assert.deepEqual(
      [...sent].filter((name) => !OLD.has(name)),
      [],
    );
  });
}

test("filters of Istio's build are sent to a proxy that lists them", () => {
  const listed = ["istio.alpn", "envoy.filters.http.peer_metadata", "envoy.filters.network.metadata_exchange"];
  const more = [...extensionsFor("sidecar", listed)].filter((name) => !OLD.has(name));
  assert.ok(more.length > 0);
});
