import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG, durationMs, type ProxyConfigSources, readProxyConfig } from "./proxy-config.ts";

async function configOf(sources: ProxyConfigSources) {
  const { config, problems } = await readProxyConfig(sources);
  assert.deepEqual(problems, []);
  return config;
}

async function problemsOf(sources: ProxyConfigSources): Promise<string[]> {
  const { problems } = await readProxyConfig(sources);
  return problems.map(({ source, field, message, severity }) => `${severity}: ${source}: ${field} ${message}`);
}

const mesh = (text: string) => ({ path: "mesh.yaml", text });

test("readProxyConfig() without sources gives the defaults", async () => {
  assert.deepEqual(await configOf({}), DEFAULT_PROXY_CONFIG);
});

test("readProxyConfig() puts the annotation above PROXY_CONFIG and that above the mesh file", async () => {
  const config = await configOf({
    meshFile: mesh("defaultConfig: {discoveryAddress: file:1, binaryPath: /file, configPath: /file}"),
    environment: '{"discoveryAddress":"env:1","binaryPath":"/env"}',
    annotations: { "proxy.istio.io/config": "discoveryAddress: annotation:1" },
  });
  assert.deepEqual(
    [config?.discoveryAddress, config?.binaryPath, config?.configPath],
    ["annotation:1", "/env", "/file"],
  );
});

test("readProxyConfig() replaces lists and messages, and merges proxyMetadata", async () => {
  const config = await configOf({
    meshFile: mesh(
      "defaultConfig:\n  extraStatTags: [a]\n  proxyMetadata: {A: '1', B: '1'}\n  tracing: {zipkin: {address: 'z:1'}}",
    ),
    environment: "extraStatTags: [b]\nproxyMetadata: {B: '2'}\ntracing: {}",
  });
  assert.deepEqual(config?.extraStatTags, ["b"]);
  assert.deepEqual(config?.proxyMetadata, { A: "1", B: "2" });
  assert.deepEqual(config?.tracing, {});
});

test("readProxyConfig() takes any key of a map, also one that objects have, from JSON and YAML", async () => {
  const maps = '"runtimeValues":{"__proto__":"a"},"proxyMetadata":{"__proto__":"b"}';
  const tags = '"tracing":{"customTags":{"__proto__":{"literal":{"value":"c"}}}}';
  for (const environment of [`{${maps},${tags}}`, `# YAML\n{${maps},${tags}}`]) {
    const config = await configOf({ meshFile: mesh("defaultConfig: {proxyMetadata: {A: '1'}}"), environment });
    assert.deepEqual(Object.entries(config?.runtimeValues ?? {}), [["__proto__", "a"]]);
    assert.deepEqual(Object.entries(config?.proxyMetadata ?? {}), [
      ["A", "1"],
      ["__proto__", "b"],
    ]);
    assert.equal(JSON.stringify(config?.tracing), `{${tags.slice(11)}`);
  }
});

test("readProxyConfig() keeps what a null leaves unset, and reads both spellings of a field", async () => {
  const config = await configOf({ environment: "discovery_address: other:1\nproxyMetadata:\nbinaryPath: null" });
  assert.equal(config?.discoveryAddress, "other:1");
  assert.equal(config?.binaryPath, DEFAULT_PROXY_CONFIG.binaryPath);
  assert.equal(config?.proxyMetadata, undefined);
});

test("readProxyConfig() leaves out what equals the default of protobuf", async () => {
  const config = await configOf({
    environment: '{"controlPlaneAuthPolicy":"NONE","statNameLength":0,"concurrency":0}',
  });
  assert.equal(config !== undefined && "controlPlaneAuthPolicy" in config, false);
  assert.equal(config !== undefined && "statNameLength" in config, false);
  assert.equal(config?.concurrency, 0);
});

test("readProxyConfig() writes durations canonically", async () => {
  const config = await configOf({ environment: '{"drainDuration":"1m","terminationDrainDuration":"250ms"}' });
  assert.deepEqual([config?.drainDuration, config?.terminationDrainDuration], ["60s", "0.250s"]);
  assert.equal(durationMs(config?.terminationDrainDuration), 250);
});

test("readProxyConfig() takes concurrency from the flag, then the configuration, then the CPU limit", async () => {
  assert.equal((await configOf({ cpuLimit: 3 }))?.concurrency, 3);
  assert.equal((await configOf({ cpuLimit: 3, environment: "concurrency: 2" }))?.concurrency, 2);
  assert.equal((await configOf({ cpuLimit: 3, environment: "concurrency: 2", concurrency: 1 }))?.concurrency, 1);
});

test("readProxyConfig() applies single annotations and the drain seconds of older installations", async () => {
  const config = await configOf({
    annotations: { "sidecar.istio.io/discoveryAddress": "pilot:9", "status.sidecar.istio.io/port": "15099" },
    terminationDrainSeconds: 7,
  });
  assert.deepEqual(
    [config?.discoveryAddress, config?.statusPort, config?.terminationDrainDuration],
    ["pilot:9", 15099, "7s"],
  );
});

test("readProxyConfig() warns of a status port in an annotation that is none, and keeps the other", async () => {
  for (const port of ["x", "70000", "0x10", " 15099", "15099.0", "1e4"]) {
    const annotations = { "status.sidecar.istio.io/port": port };
    assert.deepEqual(await problemsOf({ annotations }), [
      `warning: annotation status.sidecar.istio.io/port:  must be a port from 1 to 65535, or 0 for none, not "${port}"; it is ignored`,
    ]);
    assert.equal((await readProxyConfig({ annotations })).config?.statusPort, 15020);
  }
});

test("readProxyConfig() has no status port when the annotation says 0", async () => {
  const { config, problems } = await readProxyConfig({ annotations: { "status.sidecar.istio.io/port": "0" } });
  assert.deepEqual([config && "statusPort" in config, problems], [false, []]);
});

test("readProxyConfig() takes tracingServiceName where a text has serviceCluster beside it, in either order", async () => {
  for (const fields of [
    ["serviceCluster: sc", "tracingServiceName: CANONICAL_NAME_ONLY"],
    ["tracingServiceName: CANONICAL_NAME_ONLY", "serviceCluster: sc"],
  ]) {
    const config = await configOf({ environment: fields.join("\n") });
    assert.equal(config?.tracingServiceName, "CANONICAL_NAME_ONLY");
    assert.equal(config?.serviceCluster, undefined);
  }
});

test("readProxyConfig() knows tracingServiceName as the alternative of serviceCluster", async () => {
  const config = await configOf({ environment: "tracingServiceName: CANONICAL_NAME_ONLY" });
  assert.equal(config?.tracingServiceName, "CANONICAL_NAME_ONLY");
  assert.equal(config?.serviceCluster, undefined);
});

test("readProxyConfig() takes the last of fields that exclude each other, in the order of their message, and says so", async () => {
  const tracing = {
    datadog: { address: "b:1" },
    zipkin: { address: "a:1" },
    customTags: { a: { header: { name: "h" }, literal: { value: "v" } } },
  };
  const { config, problems } = await readProxyConfig({ environment: JSON.stringify({ tracing }) });
  const customTags = { a: { header: { name: "h" } } };
  assert.deepEqual(config?.tracing, { datadog: { address: "b:1" }, customTags });
  assert.deepEqual(
    problems.map(({ severity, field, message }) => `${severity} ${field} ${message}`),
    [
      "warning tracing.customTags.a may have only one of literal, header: header counts",
      "warning tracing may have only one of zipkin, datadog: datadog counts",
    ],
  );
});

test("readProxyConfig() names source and field of every wrong value, once, not only of the first", async () => {
  const problems = await problemsOf({
    meshFile: mesh("defaultConfig: {drainDuration: 5}"),
    environment: '{"proxyAdminPort":"many","readinessProbe":{"httpGet":{"port":1},"tcpSocket":{"port":1}}}',
    annotations: { "proxy.istio.io/config": "proxyMetadata: {DNS: true}" },
  });
  assert.deepEqual(problems, [
    'error: mesh config file mesh.yaml: drainDuration must be a duration such as "5s", not 5',
    'error: environment variable PROXY_CONFIG: proxyAdminPort must be a whole number, not "many"',
    "error: environment variable PROXY_CONFIG: readinessProbe may have only one of httpGet, tcpSocket",
    "error: annotation proxy.istio.io/config: proxyMetadata.DNS must be a string, not true",
  ]);
});

test("readProxyConfig() refuses a mesh file that does not hold by itself, once", async () => {
  const meshFile = mesh("defaultConfig: {drainDuration: 0s}");
  const expected = ['error: mesh config file mesh.yaml: drainDuration must be whole seconds and at least 1s, not "0s"'];
  assert.deepEqual(await problemsOf({ meshFile }), expected);
  assert.deepEqual(await problemsOf({ meshFile, environment: '{"drainDuration":"5s"}' }), expected);
});

test("readProxyConfig() refuses what is nested beyond reason, and shows no more of a wrong value than helps", async () => {
  const deep = `{"proxyMetadata":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  const [problem = ""] = await problemsOf({ environment: deep });
  assert.match(problem, /^error: environment variable PROXY_CONFIG: {2}line 1 is not YAML: nesting exceeded/);
  const [long = ""] = await problemsOf({ environment: JSON.stringify({ drainDuration: "9".repeat(5_000) }) });
  assert.match(long, /drainDuration must be a duration such as "5s", not "9{99}\.\.\.$/);
});

test("readProxyConfig() reports text that is no YAML with its line, and a document that is no object", async () => {
  const [broken] = await problemsOf({ environment: "binaryPath: x\n  bad: [" });
  assert.match(broken ?? "", /^error: environment variable PROXY_CONFIG: {2}line 2 is not YAML/);
  assert.deepEqual(await problemsOf({ environment: "[1, 2]" }), [
    "error: environment variable PROXY_CONFIG:  must be an object",
  ]);
});

test("readProxyConfig() warns of unknown fields, but not of retired ones, and goes on", async () => {
  const sources = { environment: "shoeSize: 44\nparentShutdownDuration: 60s" };
  assert.deepEqual(await problemsOf(sources), [
    "warning: environment variable PROXY_CONFIG: shoeSize is not known and has no effect",
  ]);
  assert.deepEqual((await readProxyConfig(sources)).config, DEFAULT_PROXY_CONFIG);
});

for (const [environment, problem] of [
  ["discoveryAddress: nowhere", 'discoveryAddress must be host:port, not "nowhere"'],
  ["discoveryAddress: 'host:70000'", 'discoveryAddress must be host:port, not "host:70000"'],
  ["binaryPath: ''", "binaryPath must not be empty"],
  ["drainDuration: 500ms", 'drainDuration must be whole seconds and at least 1s, not "0.500s"'],
  ["statusPort: 70000", "statusPort must be a port from 1 to 65535, not 70000"],
  ["tracing: {zipkin: {}}", 'tracing.zipkin.address must be host:port, not ""'],
  ["terminationDrainDuration: -1s", "terminationDrainDuration must not be negative"],
  ['discoveryAddress: "a\\nb:1"', 'discoveryAddress must be host:port, not "a\\nb:1"'],
  ["discoveryAddress: 'a_b:1'", 'discoveryAddress must be host:port, not "a_b:1"'],
  ["discoveryAddress: '1.2.3:5'", 'discoveryAddress must be host:port, not "1.2.3:5"'],
  ["discoveryAddress: '$(HOST_IP):5'", 'discoveryAddress must be host:port, not "$(HOST_IP):5"'],
  ["envoyMetricsServiceAddress: x", 'envoyMetricsServiceAddress must be host:port, not "x"'],
  ["tracing: {lightstep: {address: 'a:1'}}", "tracing.lightstep.accessToken must not be empty"],
  [
    "tracing: {tlsSettings: {mode: MUTUAL, privateKey: k}}",
    "tracing.tlsSettings needs clientCertificate for mode MUTUAL",
  ],
  [
    "tracing: {tlsSettings: {mode: MUTUAL, clientCertificate: c}}",
    "tracing.tlsSettings needs privateKey for mode MUTUAL",
  ],
  [
    "tracing: {tlsSettings: {mode: SIMPLE, credentialName: a, caCertificates: b}}",
    "tracing.tlsSettings may not have files of certificates beside credentialName",
  ],
  [
    "tracing: {tlsSettings: {mode: SIMPLE, insecureSkipVerify: true, subjectAltNames: [a]}}",
    "tracing.tlsSettings may not say by what servers are verified when insecureSkipVerify is set",
  ],
  [
    "tracing: {tlsSettings: {mode: SIMPLE, credentialName: 'configmap://a/b'}}",
    "tracing.tlsSettings may not name a ConfigMap as credentialName: there is no namespace that it could be in",
  ],
  ["privateKeyProvider: {}", "privateKeyProvider must be cryptomb or qat"],
  ["privateKeyProvider: {cryptomb: {}}", "privateKeyProvider.cryptomb.pollDelay must be set, and other than 0"],
  ["privateKeyProvider: {qat: {pollDelay: 0s}}", "privateKeyProvider.qat.pollDelay must be set, and other than 0"],
] as const) {
  test(`readProxyConfig() refuses ${environment}`, async () => {
    assert.deepEqual(await problemsOf({ environment }), [`error: effective proxy configuration: ${problem}`]);
    assert.equal((await readProxyConfig({ environment })).config, undefined);
  });
}

test("readProxyConfig() takes numbers that fit their type, as text too, and no others", async () => {
  const wrong = async (environment: string) => (await readProxyConfig({ environment })).config === undefined;
  for (const one of [
    "statNameLength: 2147483648",
    "concurrency: 4294967296",
    "statNameLength: '0x7'",
    "statNameLength: '7.0'",
    "statNameLength: '1e2'",
    "fileFlushMinSizeKb: -1",
    "gatewayTopology: {numTrustedProxies: -1}",
    "gatewayTopology: {numTrustedProxies: 4294967296}",
    "readinessProbe: {httpGet: {port: -1}}",
    "tracing: {stackdriver: {maxNumberOfAttributes: '9223372036854775808'}}",
    "tracing: {stackdriver: {maxNumberOfAttributes: 1.5}}",
    "tracing: {sampling: many}",
    '{"tracing": {"sampling": 1e400}}',
  ])
    assert.ok(await wrong(one), one);
  const config = await configOf({
    environment:
      "statNameLength: ' 7'\ngatewayTopology: {numTrustedProxies: 4294967295}\ntracing: {sampling: '1.5', stackdriver: {maxNumberOfAttributes: '9223372036854775807'}}",
  });
  assert.equal(config?.statNameLength, 7);
  assert.deepEqual(config?.tracing, { sampling: 1.5, stackdriver: { maxNumberOfAttributes: "9223372036854775807" } });
});

test("readProxyConfig() takes null in lists and maps for what is empty", async () => {
  const config = await configOf({
    environment: "extraStatTags: [null, a]\nruntimeValues: {b: null}\ntracing: {customTags: {c: null}}",
  });
  assert.deepEqual([config?.extraStatTags, config?.runtimeValues], [["", "a"], { b: "" }]);
  assert.deepEqual(config?.tracing, { customTags: { c: {} } });
});

test("readProxyConfig() does not take __proto__ for a field", async () => {
  const { config } = await readProxyConfig({ environment: '{"__proto__":{"binaryPath":"/evil"},"constructor":"x"}' });
  assert.equal(config?.binaryPath, DEFAULT_PROXY_CONFIG.binaryPath);
});

const table = join(
  process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance"),
  "pilot/cmd/pilot-agent/config/tables/TestGetMeshConfig.json",
);
test("readProxyConfig() merges as Istio's table says", {
  skip: existsSync(table) ? false : `no ${table}`,
}, async () => {
  interface Case {
    readonly name: string;
    readonly file: string;
    readonly annotation: string;
    readonly environment: string;
    readonly expect: unknown;
  }
  const { cases } = JSON.parse(readFileSync(table, "utf8")) as { cases: readonly Case[] };
  for (const { name, file, annotation, environment, expect } of cases) {
    const { config } = await readProxyConfig({
      meshFile: file === "" ? undefined : mesh(file),
      environment,
      annotations: { "proxy.istio.io/config": annotation },
    });
    assert.deepEqual(config, expect, name);
  }
});
