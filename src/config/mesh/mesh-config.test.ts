import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG, type MeshConfig, meshConfigOf, parseMeshConfig } from "./mesh-config.ts";

function meshOf(text: string): MeshConfig {
  const { value, problems } = parseMeshConfig(text);
  assert.deepEqual(problems, []);
  assert.ok(value);
  return value;
}

test("an empty mesh config means Istio's defaults", () => {
  for (const text of ["", "# nothing", "{}", "null"]) assert.deepEqual(meshOf(text), DEFAULT_MESH_CONFIG);
  assert.equal(DEFAULT_MESH_CONFIG.rootNamespace, "istio-system");
  assert.equal(DEFAULT_MESH_CONFIG.outboundTrafficPolicy.mode, "ALLOW_ANY");
});

test("a field replaces its default as a whole", () => {
  const mesh = meshOf("localityLbSetting: {failoverPriority: [a]}\nenableAutoMtls: false\naccessLogEncoding: JSON");
  assert.deepEqual(mesh.localityLbSetting, { failoverPriority: ["a"] });
  assert.equal(mesh.enableAutoMtls, false);
  assert.equal(mesh.accessLogEncoding, "JSON");
});

test("null leaves the default", () => {
  assert.equal(meshOf("trustDomain: null").trustDomain, "cluster.local");
});

test("proxy settings are merged with their defaults", () => {
  const { defaultConfig } = meshOf("defaultConfig: {statusPort: 1, proxyMetadata: {A: b}}");
  assert.equal(defaultConfig.statusPort, 1);
  assert.equal(defaultConfig.proxyAdminPort, 15000);
  assert.deepEqual(defaultConfig.proxyMetadata, { A: "b" });
});

test("a tracing service name takes the place of the default service cluster", () => {
  const { defaultConfig } = meshOf("defaultConfig: {tracingServiceName: CANONICAL_NAME_ONLY}");
  assert.equal("serviceCluster" in defaultConfig, false);
});

test("extension providers are merged by name", () => {
  const mesh = meshOf(
    "extensionProviders: [{name: envoy, envoyFileAccessLog: {path: /x}}, {name: z, zipkin: {service: z.svc, port: 1}}]",
  );
  assert.deepEqual(
    mesh.extensionProviders.map(({ name }) => name),
    ["prometheus", "stackdriver", "envoy", "z"],
  );
  assert.equal(mesh.extensionProviders[2]?.envoyFileAccessLog?.path, "/x");
});

test("trust domain aliases are sorted and unique", () => {
  assert.deepEqual(meshOf("trustDomainAliases: [b, a, b]").trustDomainAliases, ["a", "b"]);
});

test("odd names are read in both spellings", () => {
  assert.deepEqual(meshOf("meshMTLS: {minProtocolVersion: TLSV1_3}").meshMTLS, { minProtocolVersion: "TLSV1_3" });
  assert.deepEqual(meshOf("mesh_mTLS: {min_protocol_version: 1}").meshMTLS, { minProtocolVersion: "TLSV1_2" });
});

test("wrong values are reported with their field", () => {
  const cases: Record<string, string> = {
    "connectTimeout: 10": "connectTimeout",
    "connectTimeout: 2h": "connectTimeout",
    "connectTimeout: 0s": "connectTimeout",
    "proxyListenPort: 0": "proxyListenPort",
    "proxyHttpPort: -1": "proxyHttpPort",
    "proxyHttpPort: 70000": "proxyHttpPort",
    "tcpKeepalive: {time: -1s}": "tcpKeepalive.time",
    "tcpKeepalive: {interval: -1s}": "tcpKeepalive.interval",
    "trustDomain: a_b": "trustDomain",
    "trustDomainAliases: [ok, '*']": "trustDomainAliases[1]",
    "accessLogEncoding: XML": "accessLogEncoding",
    "extensionProviders: [{name: a, zipkin: {}, datadog: {}}]": "extensionProviders[0].datadog",
    "localityLbSetting: {distribute: [{from: a, to: {b: 50}}]}": "localityLbSetting.distribute[0].to",
    "serviceSettings: [{hosts: ['a..b']}]": "serviceSettings[0].hosts[0]",
    "defaultConfig: {discoveryAddress: istiod}": "defaultConfig.discoveryAddress",
    "defaultConfig: {tracing: {zipkin: {address: 'a:0'}}}": "defaultConfig.tracing.zipkin.address",
    "defaultConfig: {drainDuration: 1500ms}": "defaultConfig.drainDuration",
    "defaultConfig: {envoyMetricsServiceAddress: a}": "defaultConfig.envoyMetricsServiceAddress",
    "defaultConfig: {controlPlaneAuthPolicy: INHERIT}": "defaultConfig.controlPlaneAuthPolicy",
    "defaultConfig: {tracing: {zipkin: {}}}": "defaultConfig.tracing.zipkin.address",
    "defaultConfig: {tracing: {lightstep: {address: 'a:1'}}}": "defaultConfig.tracing.lightstep.accessToken",
    "defaultConfig: {tracing: {tlsSettings: {mode: MUTUAL, privateKey: /k}}}":
      "defaultConfig.tracing.tlsSettings.clientCertificate",
    "defaultConfig: {tracing: {customTags: {a: {}}}}": "defaultConfig.tracing.customTags.a",
    "defaultConfig: {privateKeyProvider: {}}": "defaultConfig.privateKeyProvider",
    "defaultConfig: {privateKeyProvider: {qat: {pollDelay: 0s}}}": "defaultConfig.privateKeyProvider.qat.pollDelay",
    "meshMTLS: {ecdhCurves: [P-256]}": "meshMTLS.ecdhCurves",
    "proxyListenPort: 15006": "proxyInboundListenPort",
    "[]": "",
    "a: [": "",
    "a: 1\n---\nb: 2": "",
  };
  for (const [text, field] of Object.entries(cases)) {
    const { value, problems } = parseMeshConfig(text);
    assert.equal(value, undefined, text);
    assert.equal(problems.find(({ severity }) => severity === "error")?.field, field, text);
  }
});

test("unknown and deprecated fields are warnings", () => {
  const { value, problems } = parseMeshConfig(
    "rootNamespce: x\ndefaultConfig: {proxyMetadata: {ISTIO_META_DNS_AUTO_ALLOCATE: 'true'}}",
  );
  assert.ok(value);
  assert.deepEqual(
    problems.map(({ field, severity }) => `${severity} ${field}`),
    ["warning rootNamespce", "warning defaultConfig.proxyMetadata.ISTIO_META_DNS_AUTO_ALLOCATE"],
  );
});

test("what has no effect is a warning", () => {
  const { value, problems } = parseMeshConfig(
    "dnsRefreshRate: 1ms\ndefaultProviders: {tracing: [a], accessLogging: [b], metrics: [prometheus]}\nproxyHttpPort: 0\nconfigSources: [{address: 'fs:///etc'}]",
  );
  assert.ok(value);
  assert.deepEqual(
    problems.map(({ field, severity }) => `${severity} ${field}`),
    ["dnsRefreshRate", "configSources", "defaultProviders.tracing", "defaultProviders.accessLogging"].map(
      (field) => `warning ${field}`,
    ),
  );
});

test("a custom tag that says nothing is left out with a warning", () => {
  const { value, problems } = parseMeshConfig(
    "defaultConfig: {tracing: {customTags: {b: {literal: {value: ''}}, '': {header: {name: x}}, c: {environment: {name: X}}}}}",
  );
  assert.ok(value);
  const at = "warning defaultConfig.tracing.customTags";
  assert.deepEqual(
    problems.map(({ field, severity }) => `${severity} ${field}`),
    [`${at}.b`, `${at}[""]`],
  );
});

test("addresses of collectors may be IPv6, or the host's that the agent fills in", () => {
  meshOf("defaultConfig: {tracing: {zipkin: {address: '[::1]:9411'}}}");
  meshOf("defaultConfig: {tracing: {datadog: {address: '$(HOST_IP):8126'}}}");
});

test("curves that Envoy does not know, or that are there twice, are a warning", () => {
  const { value, problems } = parseMeshConfig("tlsDefaults: {ecdhCurves: [P-256, secp256r1, X25519, P-256]}");
  assert.ok(value);
  assert.deepEqual(
    problems.map(({ field, severity }) => `${severity} ${field}`),
    ["warning tlsDefaults.ecdhCurves[1]", "warning tlsDefaults.ecdhCurves[3]"],
  );
});

test("an empty list of shares of localities is none", () => {
  assert.deepEqual(meshOf("localityLbSetting: {distribute: [], failover: [{from: a, to: b}]}").localityLbSetting, {
    failover: [{ from: "a", to: "b" }],
  });
});

test("meshConfigOf() reads data", () => {
  assert.equal(meshConfigOf({ accessLogFile: "/dev/stdout" }).value?.accessLogFile, "/dev/stdout");
  assert.deepEqual(meshConfigOf(undefined).value, DEFAULT_MESH_CONFIG);
});

test("extension providers need a name of their own, a host and a port; a mesh with others is taken, with a warning", () => {
  const fields = (...extensionProviders: object[]) => {
    const { value, problems } = meshConfigOf({ accessLogFile: "/log", extensionProviders });
    assert.equal(value?.accessLogFile, "/log");
    assert.deepEqual(
      new Set(problems.map(({ severity }) => severity)),
      new Set(problems.length > 0 ? ["warning"] : []),
    );
    return problems.map(({ field }) => field);
  };
  const at = (service: string) => ({ name: "a", zipkin: { service, port: 9411 } });
  for (const good of ["zipkin.default.svc", "10.0.0.1", "fd00::1", "default/zipkin.default.svc"]) {
    assert.deepEqual(fields(at(good)), []);
  }
  for (const bad of ["", "a b", "a/b/c", "host:80", "/host", "Default_x/host"]) {
    assert.deepEqual(fields(at(bad)), ["extensionProviders[0].zipkin.service"], bad);
  }
  assert.deepEqual(fields({ name: "a", datadog: { service: "a.b" } }), ["extensionProviders[0].datadog.port"]);
  assert.deepEqual(fields({ name: "a" }), ["extensionProviders[0]"]);
  for (const nameless of [{ name: "", prometheus: {} }, { prometheus: {} }]) {
    assert.deepEqual(fields(nameless), ["extensionProviders[0].name"]);
  }
  assert.deepEqual(fields({}), ["extensionProviders[0].name", "extensionProviders[0]"]);
  assert.deepEqual(fields({ name: "a", prometheus: {} }, { name: "a", stackdriver: {} }), [
    "extensionProviders[1].name",
  ]);
  const check = (more: object) => fields({ name: "a", envoyExtAuthzHttp: { service: "a.b", port: 80, ...more } });
  assert.deepEqual(check({ pathPrefix: "x" }), ["extensionProviders[0].envoyExtAuthzHttp.pathPrefix"]);
  assert.deepEqual(check({ statusOnError: "999" }), ["extensionProviders[0].envoyExtAuthzHttp.statusOnError"]);
  assert.deepEqual(check({ pathPrefix: "/%zz" }), ["extensionProviders[0].envoyExtAuthzHttp.pathPrefix"]);
  assert.deepEqual(check({ includeRequestHeadersInCheck: ["a*", "*"] }), [
    "extensionProviders[0].envoyExtAuthzHttp.includeRequestHeadersInCheck",
  ]);
  assert.deepEqual(check({ timeout: "-1s", includeRequestBodyInCheck: {} }), [
    "extensionProviders[0].envoyExtAuthzHttp.timeout",
    "extensionProviders[0].envoyExtAuthzHttp.includeRequestBodyInCheck.maxRequestBytes",
  ]);
  assert.deepEqual(check({ statusOnError: "503", pathPrefix: "/x%20y?a=%" }), []);
});
