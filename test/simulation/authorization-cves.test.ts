/** Holes that meshes had in authorization and tokens, each tried on a real Envoy with our filters. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { tcpAuthorization } from "#translate/authorization/filters.ts";
import { authorizationInput, authorizationPoliciesOf } from "#translate/policies/authorization-policies.ts";
import { jwtInput, requestAuthenticationsOf } from "#translate/policies/request-authentications.ts";
import { NO_ENVOY } from "../support/ads-envoy.ts";
import { type Ask, AuthorizationEnvoy, WORKLOAD } from "../support/authorization-envoy.ts";
import { meshOf } from "../support/mesh.ts";
import { object } from "../support/objects.ts";

const account = (name: string) => `spiffe://cluster.local/ns/default/sa/${name}`;
const IDENTITIES = [account("a.b"), account("aXb")];
const SECRET = Buffer.alloc(32, "a secret").toString("base64url");
const JWKS = JSON.stringify({ keys: [{ kty: "oct", k: SECRET }] });

const policy = (spec: object) => object("AuthorizationPolicy", "policy", spec);
const tokens = (rule: object) => object("RequestAuthentication", "tokens", { jwtRules: [{ issuer: "me", ...rule }] });
const deny = (operation: object) => policy({ action: "DENY", rules: [{ to: [{ operation }] }] });
const allowFrom = (source: object) => policy({ rules: [{ from: [{ source }] }] });
const needsToken = allowFrom({ requestPrincipals: ["*"] });

function signed(header: object, claims: object, key: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part(header)}.${part({ iss: "me", sub: "joe", ...claims })}`;
  return `${text}.${key === "" ? "" : createHmac("sha256", Buffer.from(key, "base64url")).update(text).digest("base64url")}`;
}

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const good = bearer(signed({ alg: "HS256" }, {}, SECRET));

interface Hole {
  readonly policies: string;
  readonly normalization?: string;
  /** What has to be refused, and what has to be served. */
  readonly refused: readonly Ask[];
  readonly served: readonly Ask[];
}

const nobodys = jwtInput(meshOf(tokens({})), requestAuthenticationsOf(meshOf(tokens({})), WORKLOAD)).jwtKeys[0] ?? "";
const HUGE = "x".repeat(40_000);

const HOLES: Readonly<Record<string, Hole>> = {
  "CVE-2021-31920: repeated slashes go past a path": {
    policies: deny({ paths: ["/admin", "/admin/*"] }),
    normalization: "MERGE_SLASHES",
    refused: ["/admin", "//admin", "/x/..//admin", "///admin//x", "/./admin"].map((path) => ({ path })),
    served: [{ path: "/other" }, { path: "/administrator" }],
  },
  "CVE-2021-31920: escaped slashes and dots go past a path": {
    policies: deny({ paths: ["/admin", "/admin/*"] }),
    normalization: "DECODE_AND_MERGE_SLASHES",
    refused: ["/%2Fadmin", "/admin%2fx", "/x/%2e%2e/admin", "/x%5C..%5cadmin", "/%61dmin", "/..%2fadmin"].map(
      (path) => ({ path }),
    ),
    served: [{ path: "/x%20y" }],
  },
  "CVE-2021-39156: a fragment goes past a path": {
    policies: deny({ paths: ["/admin"] }),
    refused: [{ path: "/admin#x" }, { path: "/admin?#x" }, { path: "/x/../admin#" }],
    served: [{ path: "/" }],
  },
  "CVE-2021-39155: another case goes past a host": {
    policies: deny({ hosts: ["secret.example.com", "*.inner.example.com"] }),
    refused: ["secret.example.com", "Secret.Example.COM", "a.INNER.example.com"].map((host) => ({ host })),
    served: [{ host: "example.com" }],
  },
  "CVE-2022-21679: hosts of a policy are not looked at": {
    policies: policy({ rules: [{ to: [{ operation: { hosts: ["example.com"], notPaths: ["/private*"] } }] }] }),
    refused: [{ host: "other.org" }, { host: "example.com", path: "/private" }],
    served: [{ host: "example.com" }],
  },
  "CVE-2026-39350: a dot in a service account is any character": {
    policies: allowFrom({ serviceAccounts: ["a.b"] }),
    refused: [{ identity: account("aXb") }, {}],
    served: [{ identity: account("a.b") }],
  },
  "CVE-2026-39350: a dot in a principal or namespace is any character": {
    policies: allowFrom({ principals: ["*/sa/a.b"] }),
    refused: [{ identity: account("aXb") }],
    served: [{ identity: account("a.b") }],
  },
  "ISTIO-SECURITY-2021-004: fields of mutual TLS on plain text": {
    policies: policy({
      action: "DENY",
      rules: [{ from: [{ source: { notPrincipals: ["cluster.local/ns/default/sa/a.b"] } }] }],
    }),
    refused: [{}, { identity: account("aXb") }],
    served: [{ identity: account("a.b") }],
  },
  "CVE-2026-26308: a repeated header hides the value that is denied": {
    policies: policy({ action: "DENY", rules: [{ when: [{ key: "request.headers[x-role]", values: ["guest"] }] }] }),
    refused: ["guest", ["user", "guest"], ["guest", "user"]].map((role) => ({ headers: { "x-role": role } })),
    served: [{ headers: { "x-role": ["user", "admin"] } }, {}],
  },
  "CVE-2020-8595, CVE-2021-21378: tokens that nobody signed, or others did": {
    policies: tokens({ jwks: JWKS }) + needsToken,
    refused: [
      {},
      bearer(signed({ alg: "none" }, {}, "")),
      bearer(signed({ alg: "HS256" }, {}, Buffer.alloc(32, "x").toString("base64url"))),
      bearer(signed({ alg: "HS256" }, { iss: "stranger" }, SECRET)),
      bearer(signed({ alg: "HS256" }, { exp: 1 }, SECRET)),
      { ...bearer(signed({ alg: "HS256" }, { iss: "stranger" }, SECRET)), path: "/?x#" },
    ],
    served: [good],
  },
  "CVE-2019-12995: tokens of all shapes and sizes": {
    policies: tokens({ jwks: JWKS }),
    refused: ["x", "..", "a.b.c", "e30.e30.", HUGE, `${HUGE}.${HUGE.slice(0, 9_000)}.x`, "%00.%00.%00"].map(bearer),
    served: [{}, good],
  },
  "CVE-2026-31837: keys that could not be fetched are keys that somebody knows": {
    policies: tokens({}) + needsToken,
    refused: [
      good,
      bearer(signed({ alg: "HS256" }, {}, JSON.parse(nobodys).keys[0].n)),
      bearer(signed({ alg: "HS256" }, {}, Buffer.from(nobodys).toString("base64url"))),
      bearer(signed({ alg: "none" }, {}, "")),
    ],
    served: [],
  },
};

describe("holes of the past", { skip: NO_ENVOY }, () => {
  let envoy: AuthorizationEnvoy;
  const meshes = Object.values(HOLES).map(
    ({ policies, normalization }) =>
      () =>
        meshOf(policies, { mesh: normalization === undefined ? {} : { pathNormalization: { normalization } } }),
  );
  before(async () => {
    envoy = await AuthorizationEnvoy.start(IDENTITIES, meshes);
  });
  after(() => envoy?.[Symbol.asyncDispose]());

  for (const [i, [name, { refused, served }]] of Object.entries(HOLES).entries()) {
    test(name, async () => {
      for (const ask of refused) {
        const status = await envoy.ask(i, ask);
        assert.ok([400, 401, 403].includes(status), `${JSON.stringify(ask).slice(0, 200)} got ${status}`);
      }
      for (const ask of served) assert.equal(await envoy.ask(i, ask), 200, JSON.stringify(ask));
    });
  }
});

test("CVE-2020-16844: a suffix of a principal is none on TCP", () => {
  const mesh = meshOf(policy({ action: "DENY", rules: [{ from: [{ source: { principals: ["*/ns/bad/sa/x"] } }] }] }));
  const [filter] = tcpAuthorization(authorizationInput(mesh, authorizationPoliciesOf(mesh, WORKLOAD)));
  assert.ok(filter?.configType.case === "typedConfig");
  const text = Buffer.from(filter.configType.value.value).toString("latin1");
  assert.ok(text.includes("spiffe://.*/ns/bad/sa/x"), text);
});

test("CVE-2026-31837: nobody's key has no private half", () => {
  assert.deepEqual(Object.keys(JSON.parse(nobodys).keys[0]).sort(), ["e", "kty", "n"]);
});
