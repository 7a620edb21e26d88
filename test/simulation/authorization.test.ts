/** Whatever the policies and the request: what we say of it offline is what a real Envoy does. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import { meshConfigOf } from "#config/mesh-config.ts";
import { parseObject } from "#config/parse-object.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { evaluate } from "#explain/authorization/evaluate.ts";
import { normalizedPath, type PathNormalization } from "#explain/authorization/path.ts";
import { tokenOutcome } from "#explain/authorization/token.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { authorizationPoliciesOf } from "#translate/scope/authorization-policies.ts";
import { requestAuthenticationsOf } from "#translate/scope/request-authentications.ts";
import { NO_ENVOY } from "../support/ads-envoy.ts";
import { type Ask, AuthorizationEnvoy, WORKLOAD } from "../support/authorization-envoy.ts";

const SETS = Number(process.env.RANDOM_POLICIES ?? 20);
const REQUESTS = Number(process.env.RANDOM_REQUESTS ?? 40);
const SEED = Number(process.env.RANDOM_SEED ?? 1);

const id = (account: string) => `spiffe://cluster.local/ns/${account}`;
const IDENTITIES = [
  id("default/sa/web"),
  id("prod/sa/api"),
  id("default/sa/a.b"),
  "spiffe://old.example/ns/default/sa/web",
];
const TRUST_DOMAINS = ["cluster.local", "old.example"];
const SECRET = Buffer.from("a shared secret that is long enough for HS256").toString("base64url");
const JWKS = JSON.stringify({ keys: [{ kty: "oct", alg: "HS256", k: SECRET }] });

const texts = (...values: readonly string[]) =>
  fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 2 });
const some = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(fields, { requiredKeys: [] }).filter((record) => Object.keys(record).length > 0);
/** Each list also as one of what must not be. */
const withNots = (fields: Record<string, fc.Arbitrary<unknown>>) => {
  const nots = Object.entries(fields).map(([name, values]) => [`not${name[0]?.toUpperCase()}${name.slice(1)}`, values]);
  return some({ ...fields, ...Object.fromEntries(nots) }).map((record) =>
    Object.fromEntries(Object.entries(record).slice(0, 3)),
  );
};

const principals = texts(
  "*",
  "cluster.local/ns/default/sa/web",
  "cluster.local/ns/default/*",
  "*/sa/api",
  "old.example/ns/default/sa/web",
  "*/ns/prod/sa/api",
  "other/ns/default/sa/web",
);
const namespaces = texts("default", "prod", "def*", "*d", "*", "de.ault");
const accounts = texts("web", "prod/api", "a.b", "default/aXb", "default/web");
const tokens = texts(
  "*",
  "me/joe",
  "me/*",
  "*/joe",
  "*oe",
  "me*",
  "https://me/a/joe",
  "https://me/a/*",
  "*a/joe",
  "me",
);
const paths = texts(
  "/admin",
  "/admin/*",
  "*/x",
  "*",
  "/a/{*}",
  "/{**}",
  "/a/{**}/x",
  "/a/{*}/{**}",
  "//admin",
  "/admin%2Fx",
  "/Admin",
);
const ranges = texts("127.0.0.1", "127.0.0.2/31", "10.0.0.0/8", "203.0.113.0/24", "0.0.0.0/0", "::/0", "203.0.113.7");
const source = fc.oneof(
  withNots({ principals, namespaces, requestPrincipals: tokens, ipBlocks: ranges, remoteIpBlocks: ranges }),
  withNots({ serviceAccounts: accounts, requestPrincipals: tokens, ipBlocks: ranges }),
);
const operation = withNots({
  hosts: texts("example.com", "EXAMPLE.*", "*.com", "*", "example.com:*", "a.b.example.com"),
  methods: texts("GET", "P*", "*T", "*", "get"),
  paths,
  ports: texts("PORT", "9"),
});
const when = (key: string, values: fc.Arbitrary<unknown>) =>
  some({ values, notValues: values }).map((lists) => ({ key, ...lists }));
const condition = fc.oneof(
  when("request.headers[X-A]", texts("1", "1,2", "*", "1*", "*2", "2")),
  when("request.headers[host]", texts("example.com", "*")),
  when("source.ip", ranges),
  when("remote.ip", ranges),
  when("source.namespace", namespaces),
  when("source.principal", principals),
  when("source.serviceAccount", accounts),
  when("request.auth.principal", tokens),
  when("request.auth.audiences", texts("web", "api", "*")),
  when("request.auth.presenter", texts("me", "m*")),
  when("request.auth.claims[groups]", texts("admin", "a*", "*")),
  when("request.auth.claims[nested][a]", texts("x", "*", "y")),
  when("request.auth.claims[scope]", texts("read", "write", "read write")),
  when("request.auth.claims[number]", texts("5", "*")),
  when("destination.ip", texts("127.0.0.1", "127.0.0.0/8", "10.0.0.1")),
  when("destination.port", texts("PORT", "9")),
  when("connection.sni", texts("example.com", "*", "outbound_.80_*", "*.com", "Example.com")),
  when("experimental.envoy.filters.a.b[c]", texts("d")),
);
const rule = fc.record(
  {
    from: fc.array(
      source.map((one) => ({ source: one })),
      { minLength: 1, maxLength: 2 },
    ),
    to: fc.array(
      operation.map((one) => ({ operation: one })),
      { minLength: 1, maxLength: 2 },
    ),
    when: fc.array(condition, { minLength: 1, maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const policy = fc.record({
  action: fc.constantFrom("ALLOW", "DENY", "AUDIT", "ALLOW", "DENY"),
  isDryRun: fc.constantFrom(true, false, false, false),
  rules: fc.oneof(
    { arbitrary: fc.array(rule, { minLength: 1, maxLength: 2 }), weight: 9 },
    { arbitrary: fc.constant([]), weight: 1 },
  ),
});
const policySet = fc.record({
  policies: fc.array(policy, { minLength: 1, maxLength: 3 }),
  hasTokens: fc.constantFrom(true, true, false),
  normalization: fc.constantFrom<PathNormalization>(
    "DEFAULT",
    "NONE",
    "BASE",
    "MERGE_SLASHES",
    "DECODE_AND_MERGE_SLASHES",
  ),
});
type PolicySet = typeof policySet extends fc.Arbitrary<infer Value> ? Value : never;

const claims = fc.record(
  {
    iss: fc.constantFrom("me", "https://me/a", "stranger"),
    sub: fc.constantFrom("joe", "jim"),
    aud: fc.constantFrom<unknown>("web", ["api", "web"], "other"),
    azp: fc.constantFrom("me", "you"),
    groups: fc.constantFrom<unknown>(["admin", "user"], "admin", "", []),
    nested: fc.constantFrom<unknown>({ a: "x" }, { a: ["y"] }, { a: { b: 1 } }, "x"),
    scope: fc.constantFrom("read write", "read", ""),
    number: fc.constantFrom<unknown>(5, true, null),
    exp: fc.constantFrom(Date.now() / 1000 + 3600, Date.now() / 1000 - 3600).map(Math.round),
  },
  { requiredKeys: ["iss", "sub"] },
);
const ask = fc.record(
  {
    identity: fc.constantFrom(...IDENTITIES, undefined),
    sourceIp: fc.constantFrom("127.0.0.1", "127.0.0.2", "127.0.0.3"),
    sni: fc.constantFrom("example.com", "outbound_.80_._.web.example.com", undefined),
    method: fc.constantFrom("GET", "POST", "PUT"),
    host: fc.constantFrom("example.com", "Example.COM", "a.b.example.com", "example.com:8080", "other.org"),
    path: fc.constantFrom(
      ...[
        "/",
        "/admin",
        "/admin/",
        "/Admin",
        "/admin/x",
        "/a/b",
        "/a/b/x",
        "/a//x",
        "/a/../admin",
        "//admin",
        "/a/",
        "/a",
      ],
      ...["/admin%2Fx", "/admin%2fx", "/%61dmin", "/a/%2e%2e/admin", "/admin;x", "/admin?x=/y", "/x\\admin", "/a/./b"],
      ...[
        "/admin/..",
        "/..%2fadmin",
        "/a/b?#x",
        "/a%5Cb",
        "/admin/.",
        "/a/%2E./admin",
        "/a///b//x",
        "/a%00b",
        "/%zz",
        "/a*b",
        '/a/"<x>',
        "/a/b^`{|}",
        "/a/[b]",
      ],
    ),
    headers: fc.record(
      {
        "x-a": fc.constantFrom<string | string[]>("1", "2", ["1", "2"], ""),
        "x-forwarded-for": fc.constantFrom("203.0.113.7", "10.1.1.1, 203.0.113.9", "10.1.1.1"),
      },
      { requiredKeys: [] },
    ),
    claims: fc.oneof(claims, fc.constant(undefined)),
  },
  { requiredKeys: ["path"] },
);

function snapshotOf({ policies, hasTokens, normalization }: PolicySet, port: number): Snapshot {
  const rules = [
    { issuer: "me", jwks: JWKS },
    { issuer: "https://me/a", jwks: JWKS, audiences: ["web"] },
  ];
  const objects = [
    ...policies.map(({ action, isDryRun, rules: some }, i) => ({
      apiVersion: "security.istio.io/v1",
      kind: "AuthorizationPolicy",
      metadata: { name: `p-${i}`, namespace: "default", annotations: { "istio.io/dry-run": String(isDryRun) } },
      spec: { action, rules: JSON.parse(JSON.stringify(some).replaceAll("PORT", String(port))) },
    })),
    ...(hasTokens
      ? [
          {
            apiVersion: "security.istio.io/v1",
            kind: "RequestAuthentication",
            metadata: { name: "tokens", namespace: "default" },
            spec: { jwtRules: rules },
          },
        ]
      : []),
  ];
  const mesh = meshConfigOf({ trustDomainAliases: ["old.example"], pathNormalization: { normalization } }).value;
  assert.ok(mesh);
  // Policies that the checks refuse are left out.
  return buildSnapshot({
    objects: objects.flatMap((raw) => parseObject(raw).object ?? []),
    mesh,
    features: DEFAULT_FEATURES,
  });
}

function signed(payload: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256" })}.${part(payload)}`;
  return `${text}.${createHmac("sha256", Buffer.from(SECRET, "base64url")).update(text).digest("base64url")}`;
}

/** The status that we expect Envoy to answer with. */
function expected(
  set: PolicySet,
  snapshot: Snapshot,
  { asked, token, port }: { asked: Ask; token: string | undefined; port: number },
): number {
  const path = normalizedPath(asked.path ?? "/", set.normalization);
  if (path === undefined) return 400;
  const rules = requestAuthenticationsOf(snapshot, WORKLOAD).flatMap(({ spec }) => spec.jwtRules ?? []);
  const outcome = token === undefined ? { claims: undefined } : tokenOutcome(token, rules, Date.now());
  if ("refused" in outcome) return outcome.status;
  const { identity: peer, sourceIp = "127.0.0.1", sni = "", method = "GET", host = "example.com" } = asked;
  const headers = Object.fromEntries(
    Object.entries(asked.headers ?? {}).map(([name, value]) => [name, [value].flat()]),
  );
  const remoteIp = headers["x-forwarded-for"]?.[0]?.split(",").at(-1)?.trim() ?? sourceIp;
  const { verdict } = evaluate({
    policies: authorizationPoliciesOf(snapshot, WORKLOAD),
    trustDomains: TRUST_DOMAINS,
    canAsk: true,
    request: {
      protocol: "http",
      ...{ peer, sourceIp, remoteIp, destinationIp: "127.0.0.1", port, sni, method, host, path, headers },
      claims: outcome.claims,
    },
  });
  return verdict === "allowed" ? 200 : 403;
}

test("evaluate() says what Envoy does to random requests under random policies", { skip: NO_ENVOY }, async () => {
  const sets = fc.sample(policySet, { numRuns: SETS, seed: SEED });
  await using envoy = await AuthorizationEnvoy.start(
    IDENTITIES,
    sets.map((set) => (port: number) => snapshotOf(set, port)),
  );
  const seen = new Map<number, number>();
  for (const [i, set] of sets.entries()) {
    const port = envoy.ports[i] ?? 0;
    const snapshot = snapshotOf(set, port);
    for (const { claims: payload, ...random } of fc.sample(ask, { numRuns: REQUESTS, seed: SEED + i })) {
      const token = payload === undefined ? undefined : signed(payload);
      const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const asked: Ask = { ...random, headers: { ...random.headers, ...authorization } };
      const status = await envoy.ask(i, asked);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      const message = `${JSON.stringify({ ...random, payload })}\n${JSON.stringify(set, undefined, 1)}`;
      assert.equal(expected(set, snapshot, { asked, token, port }), status, message);
    }
  }
  for (const status of [200, 401, 403]) assert.ok((seen.get(status) ?? 0) > 20, `only ${JSON.stringify([...seen])}`);
});

test("evaluate() says what Envoy does to random connections under random policies", { skip: NO_ENVOY }, async () => {
  const sets = fc.sample(policySet, { numRuns: SETS, seed: SEED + 1000 });
  await using envoy = await AuthorizationEnvoy.start(
    IDENTITIES,
    sets.map((set) => (port: number) => snapshotOf(set, port)),
  );
  const seen = { true: 0, false: 0 };
  for (const [i, set] of sets.entries()) {
    const port = envoy.tcpPorts[i] ?? 0;
    const policies = authorizationPoliciesOf(snapshotOf(set, port), WORKLOAD);
    for (const { identity: peer, sourceIp = "127.0.0.1", sni } of fc.sample(ask, { numRuns: 10, seed: SEED + i })) {
      const { verdict } = evaluate({
        policies,
        trustDomains: TRUST_DOMAINS,
        canAsk: true,
        request: {
          protocol: "tcp",
          ...{ peer, sourceIp, remoteIp: sourceIp, destinationIp: "127.0.0.1", port, sni: sni ?? "" },
        },
      });
      const isServed = await envoy.echo(i, { identity: peer, sourceIp, sni });
      seen[`${isServed}`]++;
      const message = `${JSON.stringify({ peer, sourceIp, sni })}\n${JSON.stringify(set, undefined, 1)}`;
      assert.equal(verdict === "allowed", isServed, message);
    }
  }
  assert.ok(seen.true > 20 && seen.false > 20, JSON.stringify(seen));
});
