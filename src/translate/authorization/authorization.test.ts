import assert from "node:assert/strict";
import { test } from "node:test";
import type { Meaning } from "#config/kinds/authorization-policy/authorization-values.ts";
import { ExtAuthzSchema } from "#gen/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb.ts";
import { withAliases } from "#model/identity/trust-domain.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { unpacked } from "../../../test/support/translated.ts";
import { authorizationInput, authorizationPoliciesOf } from "../policies/authorization-policies.ts";
import { attributeOf } from "./attributes.ts";
import { customHttpFilters, customTcpFilters, httpAuthorization, tcpAuthorization } from "./filters.ts";
import { rbacPolicy } from "./rule.ts";

const HERE: Meaning = { namespace: "home", trustDomains: ["cluster.local"] };
const OVER_TCP = { ...HERE, forTcp: true };
const PATHS = { to: [{ operation: { paths: ["/a"] } }] };
const WEB = { namespace: "default", labels: { app: "web" } };

function inputOf(yaml: string, providers: readonly object[] = []) {
  const mesh = { extensionProviders: providers.map((one) => ({ name: "p", ...one })) };
  const snapshot = meshOf(yaml, { mesh });
  return authorizationInput(snapshot, authorizationPoliciesOf(snapshot, WEB));
}

test("a rule to allow that looks at HTTP matches no TCP connection", () => {
  assert.equal(rbacPolicy(PATHS, { ...OVER_TCP, allows: true }), undefined);
  assert.equal(
    rbacPolicy({ when: [{ key: "request.headers[a]", values: ["b"] }] }, { ...OVER_TCP, allows: true }),
    undefined,
  );
  assert.ok(rbacPolicy({ to: [{ operation: { ports: ["80"] } }] }, { ...OVER_TCP, allows: true }));
});

test("a rule to deny that looks at HTTP denies every TCP connection that the rest of it fits", () => {
  const policy = rbacPolicy({ ...PATHS, from: [{ source: { namespaces: ["a"] } }] }, { ...OVER_TCP, allows: false });
  assert.deepEqual(policy?.permissions, [
    { rule: { case: "andRules", value: { rules: [{ rule: { case: "any", value: true } }] } } },
  ]);
  assert.match(JSON.stringify(policy?.principals), /ns\/a\//);
});

test("server names of policies are in lower case, as Envoy writes those of connections", () => {
  assert.match(JSON.stringify(attributeOf("connection.sni")?.match(["*.Example.COM"], HERE)), /"\.example\.com"/);
});

test("an attribute that nobody knows allows nothing", () => {
  const when = [{ key: "request.unknown", values: ["a"] }];
  assert.equal(rbacPolicy({ when }, { ...HERE, forTcp: false, allows: true }), undefined);
});

test("many conditions beside many sources and operations stand once instead of once for each of them", () => {
  const from = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ source: { principals: [`td/ns/a/sa/s${i}`] } }));
  const when = (count: number) => [
    { key: "request.headers[x]", values: Array.from({ length: count }, (_, i) => `v${i}`) },
    { key: "destination.port", notValues: ["81"] },
  ];
  const to = [{ operation: { paths: ["/a"] } }, { operation: { methods: ["GET"] } }];
  const sizeOf = (count: number) => {
    const policy = rbacPolicy({ from: from(count), to, when: when(count) }, { ...HERE, forTcp: false, allows: true });
    return JSON.stringify(policy).length;
  };
  assert.ok(sizeOf(800) < 2.5 * sizeOf(400));
  const small = rbacPolicy({ from: from(2), to, when: when(2) }, { ...HERE, forTcp: false, allows: true });
  assert.equal(small?.principals?.length, 2, "as in Istio");
  const large = rbacPolicy({ from: from(99), to, when: when(99) }, { ...HERE, forTcp: false, allows: true });
  const [{ identifier } = assert.fail()] = large?.principals ?? [];
  assert.ok(identifier?.case === "andIds");
  const [callers, condition, ...others] = identifier.value.ids ?? [];
  assert.equal(callers?.identifier?.case === "orIds" && callers.identifier.value.ids?.length, 99);
  assert.equal(condition?.identifier?.case === "orIds" && condition.identifier.value.ids?.length, 99);
  assert.deepEqual(others, []);
  const [{ rule } = assert.fail()] = large?.permissions ?? [];
  assert.deepEqual(rule?.case === "andRules" && rule.value.rules?.map((one) => one.rule?.case), ["orRules", "notRule"]);
});

test("names in regular expressions stand for themselves", () => {
  const patternOf = (key: string, value: string) =>
    /"regex":"(.*?)"/.exec(JSON.stringify(attributeOf(key)?.match([value], HERE)))?.[1]?.replaceAll("\\\\", "\\");
  assert.equal(patternOf("source.namespace", "a.b*"), ".*/ns/a\\.b.*/.*");
  assert.equal(patternOf("source.serviceAccount", "a.b"), "spiffe://.+/ns/home/(.+/|)sa/a\\.b(/.+)?");
  assert.equal(patternOf("source.principal", "*/sa/a+b"), "spiffe://.*/sa/a\\+b");
});

test("an account of the mesh's own trust domain is the same in its aliases", () => {
  const of = (value: string, ...domains: string[]) => withAliases([value], domains);
  assert.deepEqual(of("cluster.local/ns/a/sa/b", "new", "old"), ["new/ns/a/sa/b", "old/ns/a/sa/b"]);
  assert.deepEqual(of("old/ns/a/sa/b", "new", "old"), ["new/ns/a/sa/b", "old/ns/a/sa/b"]);
  assert.deepEqual(of("other/ns/a/sa/b", "new", "old"), ["other/ns/a/sa/b"]);
  assert.deepEqual(of("*/ns/a/sa/b", "new", "old"), ["*/ns/a/sa/b"]);
  assert.deepEqual(of("*-td/ns/a/sa/b", "old-td", "new"), ["*-td/ns/a/sa/b", "new/ns/a/sa/b"]);
  assert.deepEqual(of("sa/b", "new"), ["sa/b"]);
});

test("a workload is under the policies of its namespace and of the root namespace that select it", () => {
  const policy = (name: string, namespace: string, spec: object = {}) =>
    object("AuthorizationPolicy", `${namespace}/${name}`, spec);
  const { policies } = inputOf(
    policy("own", "default") +
      policy("mesh", "istio-system", { selector: { matchLabels: { app: "web" } } }) +
      policy("other-labels", "default", { selector: { matchLabels: { app: "x" } } }) +
      policy("other-namespace", "other") +
      policy("of-a-gateway", "default", {
        targetRefs: [{ group: "gateway.networking.k8s.io", kind: "Gateway", name: "g" }],
      }),
  );
  assert.deepEqual(policies.map(({ metadata }) => metadata.name).sort(), ["mesh", "own"]);
});

test("what is denied is checked before what is allowed", () => {
  const policy = (name: string, action: string) => object("AuthorizationPolicy", name, { action, rules: [{}] });
  const input = inputOf(policy("a", "ALLOW") + policy("b", "DENY") + policy("c", "AUDIT"));
  assert.equal(httpAuthorization(input).length, 3);
  assert.equal(tcpAuthorization(input).length, 3);
  assert.deepEqual(customHttpFilters(input), []);
});

test("nobody to ask means no", () => {
  const asked = object("AuthorizationPolicy", "asked", { action: "CUSTOM", provider: { name: "p" }, rules: [{}] });
  const service = object("Service", "asker", { ports: [{ name: "http", port: 80 }] });
  const http = { service: "asker.default.svc.cluster.local", port: 80 };
  const names = (input: ReturnType<typeof inputOf>) => [
    customHttpFilters(input).map(({ name }) => name),
    customTcpFilters(input).map(({ name }) => name),
  ];
  const refused = [["envoy.filters.http.rbac"], ["envoy.filters.network.rbac"]];
  assert.deepEqual(names(inputOf(asked)), refused);
  assert.deepEqual(names(inputOf(asked, [{ envoyExtAuthzHttp: http }])), refused, "no such service");
  for (const wrong of [
    { headersToUpstreamOnAllow: ["*"] },
    { includeRequestHeadersInCheck: ["*"] },
    { pathPrefix: "no-slash" },
    { pathPrefix: "/%zz" },
    { statusOnError: "999" },
    { port: 0 },
    { timeout: "-1s" },
    { includeRequestBodyInCheck: { allowPartialMessage: true } },
  ]) {
    const provider = { envoyExtAuthzHttp: { ...http, ...wrong } };
    assert.deepEqual(names(inputOf(asked + service, [provider])), refused, JSON.stringify(wrong));
  }
  assert.deepEqual(names(inputOf(asked + service, [{ envoyExtAuthzHttp: http }])), [
    ["envoy.filters.http.rbac", "envoy.filters.http.ext_authz"],
    [],
  ]);
  assert.deepEqual(names(inputOf(asked + service, [{ envoyExtAuthzGrpc: http }])), [
    ["envoy.filters.http.rbac", "envoy.filters.http.ext_authz"],
    ["envoy.filters.network.rbac", "envoy.filters.network.ext_authz"],
  ]);
});

test("headers by their old field are told where the new one names none", () => {
  const asked = object("AuthorizationPolicy", "asked", { action: "CUSTOM", provider: { name: "p" }, rules: [{}] });
  const service = object("Service", "asker", { ports: [{ name: "http", port: 80 }] });
  const http = { service: "asker.default.svc.cluster.local", port: 80, includeHeadersInCheck: ["a"] };
  const told = (more: object) => {
    const filters = customHttpFilters(inputOf(asked + service, [{ envoyExtAuthzHttp: { ...http, ...more } }]));
    const config = filters[1]?.configType.case === "typedConfig" ? filters[1].configType.value : undefined;
    return unpacked(ExtAuthzSchema, config).allowedHeaders?.patterns.map(({ matchPattern }) => matchPattern.value);
  };
  assert.deepEqual(told({ includeRequestHeadersInCheck: [] }), ["a"]);
  assert.deepEqual(told({ includeRequestHeadersInCheck: ["b"] }), ["b"]);
});
