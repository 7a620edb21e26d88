import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "./parse-object.ts";

const GATEWAY = {
  apiVersion: "networking.istio.io/v1",
  kind: "Gateway",
  metadata: { name: "web" },
  spec: {
    selector: { istio: "ingressgateway" },
    servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*"] }],
  },
};

test("parseObject() gives the object with its metadata and origin", () => {
  const raw = {
    ...GATEWAY,
    metadata: {
      name: "web",
      namespace: "prod",
      labels: { a: "b" },
      creationTimestamp: "2024-01-01T00:00:00Z",
      uid: "1",
      managedFields: [{}],
    },
    status: { anything: true },
  };
  const { object, problems, key } = parseObject(raw, { file: "a.yaml", line: 3 });
  assert.deepEqual(problems, []);
  assert.equal(key, "Gateway/prod/web");
  assert.deepEqual(object, {
    kind: "Gateway",
    metadata: { name: "web", namespace: "prod", labels: { a: "b" }, annotations: {}, createdAt: 1_704_067_200_000 },
    spec: GATEWAY.spec,
    origin: { file: "a.yaml", line: 3 },
  });
});

test("parseObject() puts objects without a namespace into default, and without a time at its beginning", () => {
  const { object } = parseObject({ ...GATEWAY, metadata: { name: "web", namespace: "", creationTimestamp: null } });
  assert.equal(object?.metadata.namespace, "default");
  assert.equal(object?.metadata.createdAt, 0);
});

test("parseObject() reads each served version and refuses others", () => {
  for (const version of ["v1", "v1beta1", "v1alpha3"]) {
    assert.ok(parseObject({ ...GATEWAY, apiVersion: `networking.istio.io/${version}` }).object, version);
  }
  const { object, problems } = parseObject({ ...GATEWAY, apiVersion: "networking.istio.io/v9" });
  assert.equal(object, undefined);
  const message =
    'kind "Gateway" of "networking.istio.io/v9" is unknown: ignored; perhaps "Gateway" of "networking.istio.io/v1" is meant';
  assert.deepEqual(problems, [{ field: "", message, severity: "warning" }]);
});

test("parseObject() tells versions that only files can have", () => {
  const toldOf = (apiVersion: string, kind: string) => {
    const { object, problems } = parseObject({ apiVersion, kind, metadata: { name: "x" }, spec: {} });
    assert.ok(object);
    return problems.some(({ field }) => field === "apiVersion");
  };
  for (const [kind, served, other] of [
    ["EnvoyFilter", "v1alpha3", "v1"],
    ["ProxyConfig", "v1beta1", "v1alpha3"],
  ] as const) {
    assert.equal(toldOf(`networking.istio.io/${served}`, kind), false);
    assert.equal(toldOf(`networking.istio.io/${other}`, kind), true);
  }
});

test("parseObject() tells which kind is meant by a wrong group or other letters, but knows nothing of others' groups", () => {
  const adviceOf = (apiVersion: string, kind: string) =>
    parseObject({ apiVersion, kind, metadata: { name: "x" } }).problems.map(({ message }) => message.split("; ")[1]);
  assert.deepEqual(adviceOf("networking.istio.io/v1", "AuthorizationPolicy"), [
    'perhaps "AuthorizationPolicy" of "security.istio.io/v1" is meant',
  ]);
  assert.deepEqual(adviceOf("networking.istio.io/v1", "virtualservice"), [
    'perhaps "VirtualService" of "networking.istio.io/v1" is meant',
  ]);
  assert.deepEqual(adviceOf("networking.istio.io/v9", "EnvoyFilter"), [
    'perhaps "EnvoyFilter" of "networking.istio.io/v1alpha3" is meant',
  ]);
  assert.deepEqual(adviceOf("networking.istio.io/v1", "Service"), ['perhaps "Service" of "v1" is meant']);
  for (const apiVersion of ["serving.knative.dev/v1", "example.com/v1"]) {
    assert.deepEqual(adviceOf(apiVersion, "Service"), [undefined]);
  }
});

test("parseObject() knows kinds that have no effect yet", () => {
  const kinds: [string, string][] = [
    ["apps/v1", "Deployment"],
    ["v1", "ServiceAccount"],
    ["telemetry.istio.io/v1", "Telemetry"],
    ["gateway.networking.k8s.io/v1", "Gateway"],
    ["extensions.istio.io/v1alpha1", "WasmPlugin"],
  ];
  for (const [apiVersion, kind] of kinds) {
    const parsed = parseObject({ apiVersion, kind, metadata: { name: "x" }, anything: 1 });
    assert.deepEqual(parsed, { object: undefined, problems: [], key: `${kind}/default/x`, notYet: true });
  }
});

test("parseObject() leaves the settings of the one-machine mesh alone", () => {
  const parsed = parseObject({ apiVersion: "mizzen.dev/v1alpha1", kind: "Mesh", metadata: { name: "x" }, spec: 5 });
  assert.deepEqual([parsed.object, parsed.problems, parsed.notYet], [undefined, [], false]);
});

test("parseObject() refuses what is no object", () => {
  for (const raw of [undefined, null, 5, "text", [], {}, { kind: "Gateway" }, { apiVersion: 1, kind: "Gateway" }]) {
    const { object, problems, key } = parseObject(raw);
    assert.equal(object, undefined);
    assert.equal(key, "");
    assert.match(problems[0]?.message ?? "", /^is not an object/);
  }
});

test("parseObject() reports wrong metadata, and names the object nevertheless", () => {
  const { object, problems, key } = parseObject({ ...GATEWAY, metadata: { name: "web", labels: { version: 1 } } });
  assert.equal(object, undefined);
  assert.equal(key, "Gateway/default/web");
  assert.deepEqual(problems, [
    { field: "metadata.labels.version", message: "must be text, not 1: put it in quotes", severity: "error" },
  ]);
});

test("parseObject() reports a time of creation that is none: it decides which of two objects counts", () => {
  const problemsOf = (creationTimestamp: unknown) =>
    parseObject({ ...GATEWAY, metadata: { name: "web", creationTimestamp } }).problems.map(({ message }) => message);
  assert.deepEqual(problemsOf("2024-02-03T04:05:06.789+02:00"), []);
  for (const wrong of ["yesterday", "2024-02-03", "2024-02-30T00:00:00Z ", "2024-13-01T00:00:00Z", ""]) {
    assert.deepEqual(problemsOf(wrong), [
      `must be a time such as "2024-01-31T12:00:00Z", not ${JSON.stringify(wrong)}`,
    ]);
  }
});

test("parseObject() reports a wrong spec together with unknown fields", () => {
  const { object, problems } = parseObject({ ...GATEWAY, spec: { servers: "x", server: [] }, sepc: {} });
  assert.equal(object, undefined);
  assert.deepEqual(
    problems.map(({ field, severity }) => `${severity} ${field}`),
    ["warning sepc", "warning spec.server", "error spec.servers"],
  );
});

test("parseObject() accepts an object that only has warnings", () => {
  const { object, problems } = parseObject({ ...GATEWAY, spec: { ...GATEWAY.spec, extra: 1 } });
  assert.deepEqual(object?.spec, GATEWAY.spec);
  assert.deepEqual(
    problems.map(({ severity }) => severity),
    ["warning"],
  );
});

test("parseObject() is not fooled by names that objects inherit", () => {
  const raw: unknown = JSON.parse('{"__proto__": {"apiVersion": "v1", "kind": "Service"}}');
  assert.equal(parseObject(raw).key, "");
  assert.equal(parseObject({ apiVersion: "constructor", kind: "toString" }).problems[0]?.severity, "warning");
  assert.equal(parseObject({ apiVersion: "/v1", kind: "__proto__" }).object, undefined);
});

const linesOf = (kind: string, spec: object, metadata: object = { name: "x" }) =>
  parseObject({ apiVersion: "networking.istio.io/v1", kind, metadata, spec }).problems.map(
    ({ field, message }) => `${field} ${message}`,
  );
const VALID_ROUTE = { route: [{ destination: { host: "a.com" } }] };

test("parseObject() reports what else is wrong beside fields of the wrong type", () => {
  const route = [{ destination: { host: "a.com", port: { number: "eighty" } }, weight: -1 }];
  assert.deepEqual(linesOf("VirtualService", { hosts: "a.com", gateways: ["a b"], http: [{ timeout: 5, route }] }), [
    "spec.hosts must be a list",
    'spec.http[0].route[0].destination.port.number must be a whole number from 0 to 4294967295, not "eighty"',
    'spec.http[0].timeout must be a duration such as "10s", "1.5h" or "250ms", not 5',
    'spec.gateways[0] must be a host name, not "a b": "a b" is no DNS label',
    "spec.http[0].route[0].weight must not be negative, not -1",
  ]);
});

test("parseObject() reports problems of the spec beside metadata of the wrong type", () => {
  assert.deepEqual(
    linesOf("VirtualService", { hosts: ["a..b"], http: [VALID_ROUTE] }, { name: "x", labels: { v: 1 } }),
    [
      "metadata.labels.v must be text, not 1: put it in quotes",
      'spec.hosts[0] must be a host name, not "a..b": "" is no DNS label',
    ],
  );
});

test("parseObject() reports nothing that only follows from a field of the wrong type", () => {
  assert.deepEqual(linesOf("VirtualService", { hosts: ["a.com"], http: "all" }), ["spec.http must be a list"]);
  const endpoints = [{ address: "10.0.0.1" }];
  assert.deepEqual(linesOf("ServiceEntry", { hosts: ["a.com"], resolution: "STATICC", endpoints }), [
    'spec.resolution must be one of NONE, STATIC, DNS, DNS_ROUND_ROBIN, DYNAMIC_DNS, not "STATICC"',
  ]);
});

test("parseObject() suggests the nearest name for an unknown field", () => {
  assert.deepEqual(linesOf("VirtualService", { hots: [], hosts: ["a.com"], http: [{ ...VALID_ROUTE, retires: {} }] }), [
    'spec.hots is not a known field: ignored; did you mean "hosts"?',
    'spec.http[0].retires is not a known field: ignored; did you mean "retries"?',
  ]);
});

test("parseObject() rejects an object whose regular expressions are too large together, and names the largest", () => {
  const withRegexes = (regexes: readonly string[]) =>
    linesOf("VirtualService", {
      hosts: ["a.com"],
      http: regexes.map((regex) => ({ match: [{ uri: { regex } }], ...VALID_ROUTE })),
    });
  assert.deepEqual(withRegexes(Array.from({ length: 100 }, (_, i) => `^/api/v${i}/(users|orders)/[^/]+(/.*)?$`)), []);
  const large = Array.from({ length: 100 }, (_, i) => `(x{1,${i === 7 ? 900 : 800}}y)`);
  const [problem = "", ...others] = withRegexes(large);
  assert.match(problem, /^spec\.http\[7\]\.match\[0\]\.uri\.regex is too large a regular expression/);
  assert.deepEqual(others, []);
  assert.match(withRegexes([`(${"\\pL".repeat(300)}){1000}`])[0] ?? "", /^spec\.http\[0\]/);
});

test("parseObject() counts regular expressions in rewrites and in the values of EnvoyFilters", () => {
  const regex = `(${"a".repeat(900)}){1000}`;
  const rewrite = { uriRegexRewrite: { match: regex, rewrite: "/" } };
  assert.match(
    linesOf("VirtualService", { hosts: ["a.com"], http: [{ ...VALID_ROUTE, rewrite }] })[0] ?? "",
    /^spec\.http\[0\]\.rewrite\.uriRegexRewrite\.match is too large/,
  );
  const value = { match: { safe_regex: { regex } } };
  const configPatches = [{ applyTo: "HTTP_ROUTE", patch: { operation: "MERGE", value } }];
  assert.match(
    linesOf("EnvoyFilter", { configPatches }).at(-1) ?? "",
    /^spec\.configPatches\[0\]\.patch\.value\.match\.safe_regex\.regex is too large/,
  );
});
