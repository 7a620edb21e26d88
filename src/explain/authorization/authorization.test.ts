import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { describe, test } from "node:test";
import type { AuthorizationPolicy } from "#config/kinds/authorization-policy/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { objectsOf } from "../../../test/support/mesh.ts";
import { object } from "../../../test/support/objects.ts";
import { type Evaluation, evaluate, nearestMisses } from "./evaluate.ts";
import { normalizedPath, type PathNormalization } from "./path.ts";
import type { HttpRequest, Request, TcpRequest } from "./request.ts";
import { claimedOutcome, tokenOutcome, visibleClaims } from "./token.ts";

const CONNECTION = {
  peer: "spiffe://cluster.local/ns/default/sa/web",
  sourceIp: "10.0.0.1",
  remoteIp: "203.0.113.7",
  destinationIp: "10.0.0.2",
  port: 8080,
  sni: "",
};
const GET: HttpRequest = {
  ...CONNECTION,
  protocol: "http",
  method: "GET",
  path: "/info?x=1",
  host: "example.com",
  headers: {},
  claims: undefined,
};
const TCP: TcpRequest = { ...CONNECTION, protocol: "tcp" };

function policy(name: string, spec: object, metadata: object = {}): string {
  return object("AuthorizationPolicy", name, spec, metadata);
}

function verdictOf(yaml: string, request: Request = GET, canAsk = true): Evaluation {
  const policies = objectsOf(yaml) as readonly ConfigObject<AuthorizationPolicy>[];
  return evaluate({ policies, trustDomains: ["cluster.local"], canAsk, request });
}

const to = (operation: object) => ({ to: [{ operation }] });

describe("evaluate()", () => {
  test("without a policy everything is allowed; a policy that allows nothing denies everything", () => {
    assert.deepEqual([verdictOf("").verdict, verdictOf("").why], ["allowed", "no-policy"]);
    const nothing = verdictOf(policy("nothing", {}));
    assert.deepEqual([nothing.verdict, nothing.why], ["denied", "no-rule-allows"]);
    assert.equal(verdictOf(policy("all", { rules: [{}] })).verdict, "allowed");
  });

  test("what is denied is denied, whatever allows it", () => {
    const { verdict, why, decidedBy } = verdictOf(
      policy("allow", { rules: [{}] }) +
        policy("deny", { action: "DENY", rules: [to({ paths: ["/x"] }), to({ methods: ["GET"] })] }),
    );
    assert.deepEqual(
      [verdict, why, decidedBy?.policy.metadata.name, decidedBy?.rule],
      ["denied", "denied-by-rule", "deny", 1],
    );
    assert.deepEqual(decidedBy?.fields, [
      { field: "spec.rules[1].to[0].operation.methods", values: ["GET"], found: "GET", fits: true },
    ]);
  });

  test("names the fields by which the nearest rule does not fit", () => {
    const evaluation = verdictOf(
      policy("far", {
        rules: [{ from: [{ source: { namespaces: ["prod"] } }], ...to({ methods: ["POST"], paths: ["/"] }) }],
      }) + policy("near", { rules: [to({ methods: ["POST"], paths: ["/info"] })] }),
    );
    const [near, ...others] = nearestMisses(evaluation, "ALLOW");
    assert.deepEqual(others, []);
    assert.equal(near?.policy.metadata.name, "near");
    assert.deepEqual(
      near?.fields.map(({ field, found, fits }) => [field, found, fits]),
      [
        ["spec.rules[0].to[0].operation.methods", "GET", false],
        ["spec.rules[0].to[0].operation.paths", "/info", true],
      ],
    );
  });

  test("what is tried out decides nothing", () => {
    const tried = { annotations: { "istio.io/dry-run": "true" } };
    assert.equal(verdictOf(policy("deny", { action: "DENY", rules: [{}] }, tried)).verdict, "allowed");
    assert.equal(verdictOf(policy("allow", {}, tried)).verdict, "allowed");
  });

  test("a provider is asked, unless there is none or something else denies", () => {
    const custom = policy("ask", { action: "CUSTOM", provider: { name: "x" }, rules: [to({ paths: ["/info"] })] });
    assert.equal(verdictOf(custom).verdict, "asked");
    assert.equal(verdictOf(custom, { ...GET, path: "/" }).verdict, "allowed");
    assert.deepEqual(verdictOf(custom, GET, false).why, "custom-without-provider");
    assert.equal(verdictOf(custom + policy("deny", { action: "DENY", rules: [{}] })).verdict, "denied");
    assert.equal(verdictOf(custom + policy("allow", { rules: [to({ methods: ["PUT"] })] })).verdict, "denied");
  });

  test("of a connection, what HTTP alone shows allows nothing, and denies by the rest", () => {
    const rules = [to({ methods: ["GET"], ports: ["8080"] })];
    assert.equal(verdictOf(policy("allow", { rules }), TCP).verdict, "denied");
    assert.equal(verdictOf(policy("deny", { action: "DENY", rules }), TCP).verdict, "denied");
    assert.equal(verdictOf(policy("deny", { action: "DENY", rules }), { ...TCP, port: 1 }).verdict, "allowed");
    const alternatives = [{ to: [{ operation: { ports: ["8080"] } }, { operation: { paths: ["/"] } }] }];
    assert.equal(verdictOf(policy("allow", { rules: alternatives }), TCP).verdict, "denied");
    assert.equal(verdictOf(policy("allow", { rules: [to({ ports: ["8080"] })] }), TCP).verdict, "allowed");
  });
});

test("evaluate() takes an address of IPv4 that is written as one of IPv6 for one of IPv6, as Envoy does", () => {
  const deny = (range: string) => {
    const yaml = policy("deny", { action: "DENY", rules: [{ from: [{ source: { remoteIpBlocks: [range] } }] }] });
    return verdictOf(yaml, { ...GET, remoteIp: "::ffff:10.0.0.1" }).verdict;
  };
  assert.equal(deny("10.0.0.0/8"), "allowed");
  assert.equal(deny("::ffff:0:0/96"), "denied");
});

test("evaluate() compares server names without regard to case, as Envoy does", () => {
  const yaml = policy("deny", { action: "DENY", rules: [{ when: [{ key: "connection.sni", values: ["A.com"] }] }] });
  assert.equal(verdictOf(yaml, { ...TCP, sni: "a.COM" }).verdict, "denied");
});

test("evaluate() denies whatever a stand-in for an unreadable object denies", () => {
  const denial = { unreadable: "spec.action must be one of ...", action: "DENY" as const, rules: [{}] };
  const of = (kind: string, request: Request) => {
    const metadata = { name: "p", namespace: "default", labels: {}, annotations: {}, createdAt: 0 };
    const policies = [{ kind, metadata, spec: denial, origin: undefined }];
    return evaluate({ policies, trustDomains: ["cluster.local"], canAsk: true, request }).why;
  };
  assert.deepEqual([of("AuthorizationPolicy", GET), of("AuthorizationPolicy", TCP)], ["unreadable", "unreadable"]);
  assert.deepEqual([of("RequestAuthentication", GET), of("RequestAuthentication", TCP)], ["unreadable", "no-policy"]);
});

describe("normalizedPath()", () => {
  for (const [how, raw, path] of [
    ["DEFAULT", "/a/../admin", "/admin"],
    ["BASE", "/a/%2e%2E/admin?x=/../y", "/admin?x=/../y"],
    ["BASE", "//a//b", "//a//b"],
    ["BASE", "/a%2Fb\\c", "/a%2Fb/c"],
    ["MERGE_SLASHES", "//a///b%2F/", "/a/b%2F/"],
    ["DECODE_AND_MERGE_SLASHES", "/a%2F%2fb%5cc", "/a/b/c"],
    ["NONE", "/a/../b//c", "/a/../b//c"],
    ["NONE", "/a#b", undefined],
    ["BASE", "/a%00", undefined],
    ["NONE", "/\u00e9", undefined],
    ["BASE", '/%61"/.', "/a%22/"],
  ] as const satisfies readonly (readonly [PathNormalization, string, string | undefined])[]) {
    test(`${how} makes ${raw} ${path ?? "an error"}`, () => assert.equal(normalizedPath(raw, how), path));
  }
});

describe("tokenOutcome()", () => {
  const NOW = 1_800_000_000_000;
  const secret = Buffer.alloc(32, "s");
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const rsa = publicKey.export({ format: "jwk" });
  const jwks = JSON.stringify({
    keys: [
      { kty: "oct", k: secret.toString("base64url"), kid: "s" },
      { ...rsa, kid: "r" },
    ],
  });
  const rules = [
    { issuer: "me", jwks, audiences: ["web"] },
    { issuer: "far", jwksUri: "https://far.example/keys" },
  ];
  const good = { iss: "me", sub: "joe", aud: ["web"], exp: NOW / 1000 + 60, scope: "read  write" };
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

  function token(payload: object, header: object = { alg: "HS256", kid: "s" }, key: Buffer = secret): string {
    const text = `${part(header)}.${part(payload)}`;
    return `${text}.${createHmac("sha256", key).update(text).digest("base64url")}`;
  }

  const refusal = (text: string) => {
    const outcome = tokenOutcome(text, rules, NOW);
    return "refused" in outcome ? `${outcome.status} ${outcome.refused}` : "accepted";
  };

  test("gives the claims of a good token, lists as lists", () => {
    const outcome = tokenOutcome(token(good), rules, NOW);
    assert.ok("claims" in outcome);
    assert.deepEqual(outcome.claims?.scope, ["read", "write"]);
    assert.deepEqual(visibleClaims({ roles: "a b", n: 1 }, { spaceDelimitedClaims: ["roles"] }), {
      roles: ["a", "b"],
      n: 1,
    });
  });

  test("refuses what is late, early, for others or of strangers", () => {
    assert.match(refusal(token({ ...good, exp: NOW / 1000 - 120 })), /^401 .*time/);
    assert.match(refusal(token({ ...good, nbf: NOW / 1000 + 120 })), /^401 .*time/);
    assert.match(refusal(token({ ...good, aud: "api" })), /^403 it is not for web/);
    assert.match(refusal(token({ ...good, iss: "you" })), /^401 no rule accepts issuer "you"/);
  });

  test("refuses tokens without a signature, with another's, and with a public key as a secret", () => {
    const forged = Buffer.from(publicKey.export({ type: "spki", format: "pem" }));
    assert.match(refusal(`${part({ alg: "none" })}.${part(good)}.`), /^401 no key/);
    assert.match(refusal(token(good, { alg: "HS256", kid: "s" }, Buffer.from("other"))), /^401 no key/);
    assert.match(refusal(token(good, { alg: "HS256", kid: "r" }, forged)), /^401 no key/);
    assert.match(refusal(token(good, { alg: "RS256", kid: "s" })), /^401 no key/);
    assert.match(refusal(token(good, { alg: "HS256", kid: "unknown" })), /^401 no key/);
    const text = `${part({ alg: "RS256", kid: "r" })}.${part(good)}`;
    assert.equal(refusal(`${text}.${sign("sha256", Buffer.from(text), privateKey).toString("base64url")}`), "accepted");
  });

  test("is not upset by garbage", () => {
    for (const text of [
      "",
      "a",
      "a.b.c",
      `${part([])}.${part(null)}.x`,
      ".".repeat(100_000),
      part("x".repeat(100_000)),
    ])
      assert.match(refusal(text), /^401/);
  });

  test("says when it cannot know", () => {
    const outcome = tokenOutcome(token({ iss: "far", sub: "x" }), rules, NOW);
    assert.ok("claims" in outcome && outcome.note?.includes("keys are not here"));
    const unread = tokenOutcome(token(good), [], NOW);
    assert.ok("claims" in unread && unread.claims === undefined);
    assert.ok("refused" in claimedOutcome({ iss: "you" }, rules));
    assert.deepEqual(claimedOutcome({ iss: "far", scope: "a" }, rules), {
      claims: { iss: "far", scope: ["a"] },
      note: undefined,
    });
  });
});
