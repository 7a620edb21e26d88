/** Envoy accepts what our checks accept: a value that it rejects would keep the policy, and all later changes, from proxies. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseObject } from "#config/kinds/parse-object.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { generate } from "../conformance/generate.ts";
import { acceptedByEnvoy, type EnvoyResources, NO_ENVOY } from "../support/envoy.ts";
import { proxyOf } from "../support/mesh.ts";

const TEXTS = [
  ...[
    "\n",
    "\0",
    "a\nb",
    "a\rb",
    "*\n",
    "é",
    "\ud800",
    "\u2028",
    "\t",
    "\x7f",
    " ",
    "a b",
    "*",
    "**",
    "*a*",
    "a*b",
    "",
  ],
  ...["{", "[", "\\", "(", "(?", "+", "%", "/", "//", "a/b/c", ":path", "x:y", "a".repeat(5_000)],
];
const TEMPLATES = [
  ...["/{*}", "{*}", "a/{*}", "//{*}", "/{*}//", "/x//{*}", "/{*}/", "/{*}.html", "/{**}.js", "/%/{*}", "/a*/{*}"],
  ...["/*/{*}", "/{*}/*", "/{*}".repeat(20), `/{**}/${"a".repeat(300)}`, `/${"a".repeat(5_000)}/{*}`],
];
const EC = {
  kty: "EC",
  crv: "P-256",
  x: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
  y: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
};
const KEYS = [
  ...["", undefined, 5, "AQ", "A=", "a b"].map((k) => ({ kty: "oct", k })),
  ...["ES256", "RS256", "none", 5].map((alg) => ({ ...EC, alg })),
  { kty: "OKP", crv: "Ed25519", x: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" },
  { kty: "RSA", n: "AQAB", e: "AQAB" },
  { ...EC, kid: 5, use: 5 },
];

function object(kind: string, spec: object): object {
  return { apiVersion: "security.istio.io/v1", kind, metadata: { name: "p", namespace: "default" }, spec };
}

function policiesWith(text: string): object[] {
  const rule = (part: object) => object("AuthorizationPolicy", { action: "DENY", rules: [part] });
  const jwt = (part: object) =>
    object("RequestAuthentication", { jwtRules: [{ issuer: "me", jwks: '{"keys":[]}', ...part }] });
  const condition = (key: string, value: string) => rule({ when: [{ key, values: [value] }] });
  const sources = ["principals", "requestPrincipals", "namespaces", "serviceAccounts", "ipBlocks", "remoteIpBlocks"];
  const keys = ["request.headers[a]", "request.auth.claims[a]", "connection.sni", "request.auth.audiences"];
  return [
    ...sources.map((field) => rule({ from: [{ source: { [field]: [text] } }] })),
    ...["hosts", "methods", "paths", "ports"].map((field) => rule({ to: [{ operation: { [field]: [text] } }] })),
    ...keys.map((key) => condition(key, text)),
    ...["request.headers", "request.auth.claims", `experimental.envoy.filters.${text}`].map((key) =>
      condition(`${key}[${text}]`, "x"),
    ),
    ...["issuer", "outputPayloadToHeader"].map((field) => jwt({ [field]: text })),
    ...["audiences", "fromParams", "fromCookies", "spaceDelimitedClaims"].map((field) => jwt({ [field]: [text] })),
    jwt({ fromHeaders: [{ name: text }] }),
    jwt({ fromHeaders: [{ name: "a", prefix: text }] }),
    jwt({ outputClaimToHeaders: [{ header: text, claim: "a" }] }),
    jwt({ outputClaimToHeaders: [{ header: "a", claim: text }] }),
  ];
}

function keySets(): object[] {
  const texts = KEYS.flatMap((key) => [JSON.stringify({ keys: [key] }), JSON.stringify(key)]);
  return [...texts, "[]", '{"keys":[],"x":1}', "{}"].map((jwks) =>
    object("RequestAuthentication", { jwtRules: [{ issuer: "me", jwks }] }),
  );
}

test("Envoy accepts every policy that the checks accept", { skip: NO_ENVOY }, async () => {
  const templates = TEMPLATES.map((path) =>
    object("AuthorizationPolicy", { action: "DENY", rules: [{ to: [{ operation: { paths: [path] } }] }] }),
  );
  const raws = [...TEXTS.flatMap(policiesWith), ...templates, ...keySets()];
  const proxy = proxyOf({ ip: "10.0.0.1" });
  const accepted = raws.flatMap((raw): [string, EnvoyResources][] => {
    const { object: parsed } = parseObject(raw);
    if (parsed === undefined) return [];
    const mesh = buildSnapshot({ objects: [parsed], mesh: DEFAULT_MESH_CONFIG, features: DEFAULT_FEATURES });
    const { clusters, listeners } = generate(mesh, proxy);
    const resources = {
      clusters: [...clusters.values()],
      listeners: [...listeners.values()],
      routes: [],
      endpoints: [],
    };
    return [[JSON.stringify(raw).slice(0, 500), resources]];
  });
  assert.ok(accepted.length > 400 && accepted.length < raws.length, `${accepted.length} of ${raws.length}`);
  await acceptedByEnvoy(new Map(accepted));
});
