/** Policies at random: every field, negated too, with exact values, prefixes, suffixes and presence. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { parseObject } from "#config/kinds/parse-object.ts";
import { meshConfigOf } from "#config/mesh/mesh-config.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import type { PathNormalization } from "#explain/authorization/path.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { PROVIDER } from "./provider.ts";
import { HEADERS, HOSTS, IDENTITIES, JWKS, METHODS, PATHS, TRUST_DOMAINS } from "./random-requests.ts";

const texts = (...values: readonly string[]) => {
  const one = fc.constantFrom(...values);
  return fc.uniqueArray(one, { minLength: 1, maxLength: 3 });
};
/** Values of requests, and texts that fit their beginning, their end or their middle. */
const textsLike = (values: readonly string[], ...others: readonly string[]) => {
  const value = fc.constantFrom(...values);
  const cut = fc.tuple(value, fc.nat(12), fc.constantFrom("prefix", "suffix", "middle"));
  const part = cut.map(([text, at, kind]) =>
    kind === "prefix" ? `${text.slice(0, at)}*` : kind === "suffix" ? `*${text.slice(-at)}` : `*${text.slice(1, at)}*`,
  );
  const changed = fc.tuple(value, fc.constantFrom(...CHANGES)).map(([text, change]) => change(text));
  const one = fc.oneof(
    { arbitrary: value, weight: 3 },
    { arbitrary: part, weight: 3 },
    { arbitrary: changed, weight: 1 },
    { arbitrary: fc.constantFrom("*", ...others), weight: 3 },
  );
  return fc.uniqueArray(one, { minLength: 1, maxLength: 3 });
};
const CHANGES: readonly ((text: string) => string)[] = [
  (text) => text.toUpperCase(),
  (text) => `${text}.`,
  (text) => text.replace(".", "x"),
  (text) => text.replace("a", "."),
  (text) => ` ${text}`,
];
const some = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(fields, { requiredKeys: [] }).filter((record) => Object.keys(record).length > 0);
/** Each list also as one of what must not be; at most three, so that something fits now and then. */
const withNots = (fields: Record<string, fc.Arbitrary<unknown>>) => {
  const nots = Object.entries(fields).map(([name, values]) => [`not${name[0]?.toUpperCase()}${name.slice(1)}`, values]);
  const all = Object.entries({ ...fields, ...Object.fromEntries(nots) });
  return fc
    .subarray(all, { minLength: 1, maxLength: 3 })
    .chain((chosen) => fc.record(Object.fromEntries(chosen) as Record<string, fc.Arbitrary<unknown>>));
};

const names = IDENTITIES.map((identity) => identity.replace("spiffe://", ""));
const principals = textsLike(
  names,
  "*/sa/api",
  "*/ns/prod/sa/api",
  "other/ns/default/sa/web",
  "*web",
  "cluster.local/*",
);
const namespaces = texts("default", "prod", "def*", "*d", "*", "de.ault", "pr*d", "kube-system", "*-system");
const accounts = texts("web", "prod/api", "a.b", "default/aXb", "default/web", "api", "other/web", "a+b");
const tokens = texts(
  ...[
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
    "*/*",
    "m*/joe",
  ],
  ...["me/jo*", "me/", "/joe", "me/*oe", "https://*"],
);
const templates = ["/a/{*}", "/{**}", "/a/{**}/x", "/a/{*}/{**}", "/{*}", "/{*}/x", "/a/b/{**}", "/a/{*}/x"];
const paths = textsLike(PATHS, ...templates, "//admin", "/admin%2Fx", "/admin?x=/y", "/x/admin", "*/x");
const ranges = texts(
  ...["127.0.0.1", "127.0.0.2/31", "10.0.0.0/8", "203.0.113.0/24", "0.0.0.0/0", "::/0", "203.0.113.7", "127.0.0.3/32"],
  ...["::ffff:127.0.0.1", "::ffff:0:0/96", "203.0.113.9/1", "10.1.1.1", "2001:db8::/32"],
);
const source = fc.oneof(
  withNots({ principals, namespaces, requestPrincipals: tokens, ipBlocks: ranges, remoteIpBlocks: ranges }),
  withNots({ serviceAccounts: accounts, requestPrincipals: tokens, ipBlocks: ranges, remoteIpBlocks: ranges }),
);
const providedSource = withNots({ ipBlocks: ranges, remoteIpBlocks: ranges });
const hosts = textsLike(HOSTS, "EXAMPLE.*", "*.com", "example.com:*", "*:8080", "*EXAMPLE.com");
const operation = withNots({
  hosts,
  methods: textsLike(METHODS, "P*", "*T", "get"),
  paths,
  ports: texts("PORT", "9", "0", "65535"),
});
const when = (key: string, values: fc.Arbitrary<unknown>) =>
  some({ values, notValues: values }).map((lists) => ({ key, ...lists }));
const plainCondition = fc.oneof(
  ...HEADERS.map((name) => when(`request.headers[${name}]`, texts("1", "1,2", "*", "1*", "*2", "2", "a b", "A", "a*"))),
  when("request.headers[X-A]", texts("1", "*", "2")),
  when("request.headers[host]", hosts),
  when("request.headers[:authority]", hosts),
  when("request.headers[:method]", textsLike(METHODS)),
  when("request.headers[:path]", textsLike(PATHS)),
  when("request.headers[x-absent]", texts("1", "*")),
  when("source.ip", ranges),
  when("remote.ip", ranges),
  when("destination.ip", texts("127.0.0.1", "127.0.0.0/8", "10.0.0.1", "::/0")),
  when("destination.port", texts("PORT", "9")),
  when(
    "connection.sni",
    textsLike(["example.com", "outbound_.80_._.web.example.com"], "outbound_.80_*", "Example.com"),
  ),
  when("experimental.envoy.filters.a.b[c]", texts("d", "[d]")),
);
const identityCondition = fc.oneof(
  when("source.namespace", namespaces),
  when("source.principal", principals),
  when("source.serviceAccount", accounts),
  when("request.auth.principal", tokens),
  when("request.auth.audiences", texts("web", "api", "*", "w*")),
  when("request.auth.presenter", texts("me", "m*", "*e", "*")),
  when("request.auth.claims[groups]", texts("admin", "a*", "*", "*min")),
  when("request.auth.claims[nested][a]", texts("x", "*", "y", "*y")),
  when("request.auth.claims[nested]", texts("x", "*")),
  when("request.auth.claims[scope]", texts("read", "write", "read write")),
  when("request.auth.claims[number]", texts("5", "*")),
  when("request.auth.claims[iss]", texts("me", "https://*")),
);
const ruleOf = (sources: fc.Arbitrary<object>, conditions: fc.Arbitrary<object>) =>
  fc.record(
    {
      from: fc.array(
        sources.map((one) => ({ source: one })),
        { minLength: 1, maxLength: 2 },
      ),
      to: fc.array(
        operation.map((one) => ({ operation: one })),
        { minLength: 1, maxLength: 2 },
      ),
      when: fc.array(conditions, { minLength: 1, maxLength: 2 }),
    },
    { requiredKeys: [] },
  );
const rulesOf = (rule: fc.Arbitrary<object>) =>
  fc.oneof(
    { arbitrary: fc.array(rule, { minLength: 1, maxLength: 3 }), weight: 9 },
    { arbitrary: fc.constant([]), weight: 1 },
  );
const ruled = ruleOf(source, fc.oneof(plainCondition, identityCondition));
const policy = fc.record({
  namespace: fc.constantFrom("default", "default", "default", "istio-system", "prod"),
  selector: fc.constantFrom(undefined, undefined, { matchLabels: { app: "web" } }, { matchLabels: { app: "other" } }),
  isDryRun: fc.constantFrom(true, false, false, false, false),
  action: fc.oneof(
    {
      arbitrary: fc.record({ name: fc.constantFrom("ALLOW", "DENY", "AUDIT", "ALLOW", "DENY"), rules: rulesOf(ruled) }),
      weight: 6,
    },
    {
      arbitrary: fc.record({ name: fc.constant("CUSTOM"), rules: rulesOf(ruleOf(providedSource, plainCondition)) }),
      weight: 1,
    },
  ),
});

/** Sets of policies, and what else decides what becomes of requests. */
export const policySet = fc.record({
  policies: fc.array(policy, { minLength: 1, maxLength: 4 }),
  hasTokens: fc.constantFrom(true, true, false),
  /** Whether the provider of CUSTOM policies can be asked. */
  hasProvider: fc.boolean(),
  normalization: fc.constantFrom<PathNormalization>(
    "DEFAULT",
    "NONE",
    "BASE",
    "MERGE_SLASHES",
    "DECODE_AND_MERGE_SLASHES",
  ),
});
export type PolicySet = typeof policySet extends fc.Arbitrary<infer Value> ? Value : never;

/** The mesh with these policies. Those that the checks reject are left out. */
export function snapshotOf({ policies, hasTokens, hasProvider, normalization }: PolicySet, port: number): Snapshot {
  const provider = hasProvider ? PROVIDER.name : "nobody";
  const written = policies.map(({ action: { name: action, rules }, isDryRun, namespace, selector }, i) => {
    const annotations = action === "ALLOW" || action === "DENY" ? { "istio.io/dry-run": String(isDryRun) } : {};
    return securityObject(
      "AuthorizationPolicy",
      { name: `p-${i}`, namespace, annotations },
      {
        ...(selector && { selector }),
        action,
        ...(action === "CUSTOM" && { provider: { name: provider } }),
        rules: JSON.parse(JSON.stringify(rules).replaceAll("PORT", String(port))),
      },
    );
  });
  const jwtRules = [
    { issuer: "me", jwks: JWKS },
    { issuer: "https://me/a", jwks: JWKS, audiences: ["web"] },
  ];
  const tokenRules = securityObject("RequestAuthentication", { name: "tokens", namespace: "default" }, { jwtRules });
  const objects = [...written, ...(hasTokens ? [tokenRules] : []), PROVIDER.service];
  const [, ...trustDomainAliases] = TRUST_DOMAINS;
  const mesh = meshConfigOf({
    trustDomainAliases,
    pathNormalization: { normalization },
    extensionProviders: [PROVIDER.extension],
  });
  assert.ok(mesh.value, JSON.stringify(mesh.problems));
  return buildSnapshot({
    objects: objects.flatMap((raw) => parseObject(raw).object ?? []),
    mesh: mesh.value,
    features: DEFAULT_FEATURES,
  });
}

function securityObject(kind: string, metadata: object, spec: object): object {
  return { apiVersion: "security.istio.io/v1", kind, metadata, spec };
}
