import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { CompactSign, exportJWK, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import type { Authentication, Authenticator } from "./authenticator.ts";
import { jwtAuthenticator } from "./jwt.ts";
import type { JwtRule, KeyLocation } from "./jwt-rule.ts";

const NOW = Date.UTC(2026, 0, 1);
const ISSUER = "https://kubernetes.default.svc";
const SECOND = 1_000;

type Key = Awaited<ReturnType<typeof generateKeyPair>>["privateKey"];

interface TokenInput extends JWTPayload {
  readonly kid?: string;
  readonly signWith?: Key;
}

describe("jwtAuthenticator()", () => {
  let privateKey: Key;
  let jwks: string;
  before(async () => {
    const pair = await generateKeyPair("ES256");
    privateKey = pair.privateKey;
    jwks = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: "one", alg: "ES256" }] });
  });

  function authenticator(
    keys: KeyLocation = { kind: "inline", jwks },
    fetchJson?: () => Promise<unknown>,
  ): Authenticator {
    const rule: JwtRule = { issuer: ISSUER, audiences: ["istio-ca"], keys };
    const options = { now: () => NOW, trustDomain: () => "cluster.local" };
    return jwtAuthenticator(rule, fetchJson === undefined ? options : { ...options, fetchJson });
  }

  function claims(input: JWTPayload = {}): JWTPayload {
    const seconds = NOW / SECOND;
    const sub = "system:serviceaccount:default:httpbin";
    return { iss: ISSUER, aud: ["istio-ca"], sub, exp: seconds + 3600, nbf: seconds, iat: seconds, ...input };
  }

  function token({ kid = "one", signWith = privateKey, ...input }: TokenInput = {}): Promise<string> {
    return new SignJWT(claims(input)).setProtectedHeader({ alg: "ES256", kid }).sign(signWith);
  }

  async function bearer(text: string, authenticate = authenticator()): Promise<Authentication | undefined> {
    return authenticate({ authorization: `Bearer ${text}`, certificate: undefined });
  }

  async function refusal(text: string, authenticate = authenticator()): Promise<string> {
    const result = await bearer(text, authenticate);
    assert.ok(result !== undefined && "refused" in result, JSON.stringify(result));
    assert.ok(!result.refused.includes("\n"));
    return result.refused;
  }

  test("gives a service account its identity in the trust domain", async () => {
    assert.deepEqual(await bearer(await token()), {
      caller: {
        identity: "spiffe://cluster.local/ns/default/sa/httpbin",
        namespace: "default",
        serviceAccount: "httpbin",
        provedBy: "jwt",
      },
    });
  });

  test("has nothing to say without an authorization header", async () => {
    assert.equal(await authenticator()({ authorization: undefined, certificate: undefined }), undefined);
  });

  test("refuses another scheme than Bearer", async () => {
    const result = await authenticator()({ authorization: "Basic dXNlcjpwYXNz", certificate: undefined });
    assert.deepEqual(result, { refused: "the authorization header holds no bearer token" });
  });

  test("refuses a token that expired, to the second", async () => {
    assert.match(await refusal(await token({ exp: NOW / SECOND })), /^the token expired at 2026-01-01T00:00:00/);
    assert.match(await refusal(await token({ exp: NOW / SECOND - 3600 })), /^the token expired at 2025-12-31T23:00:00/);
    assert.ok("caller" in ((await bearer(await token({ exp: NOW / SECOND + 1 }))) ?? {}));
  });

  test("refuses a token without an end", async () => {
    const { exp: _, ...endless } = claims();
    const text = await new SignJWT(endless).setProtectedHeader({ alg: "ES256", kid: "one" }).sign(privateKey);
    assert.equal(await refusal(text), 'the token\'s "exp" is not accepted: (missing)');
  });

  test("takes a token that begins within the clock skew and refuses a later one", async () => {
    assert.ok("caller" in ((await bearer(await token({ nbf: NOW / SECOND + 299 }))) ?? {}));
    assert.match(await refusal(await token({ nbf: NOW / SECOND + 301 })), /"nbf" is not accepted/);
  });

  test("refuses another audience and none", async () => {
    assert.equal(await refusal(await token({ aud: ["vault"] })), 'the token\'s "aud" is not accepted: ["vault"]');
    const { aud: _, ...nobody } = claims();
    const text = await new SignJWT(nobody).setProtectedHeader({ alg: "ES256", kid: "one" }).sign(privateKey);
    assert.match(await refusal(text), /"aud" is not accepted: \(missing\)/);
  });

  test("refuses another issuer", async () => {
    assert.match(await refusal(await token({ iss: "https://evil" })), /"iss" is not accepted: "https:\/\/evil"/);
  });

  test("refuses an unknown key id", async () => {
    assert.equal(await refusal(await token({ kid: "two" })), 'the issuer has no key for the token\'s kid "two"');
  });

  test("refuses a signature of another key", async () => {
    const { privateKey: other } = await generateKeyPair("ES256");
    assert.equal(await refusal(await token({ signWith: other })), "the token's signature is wrong");
  });

  test("refuses algorithm none", async () => {
    const text = new UnsecuredJWT(claims()).encode();
    assert.equal(await refusal(text), 'the token\'s algorithm "none" is not accepted');
  });

  test("refuses a token signed with a shared secret, even one that is in the key set", async () => {
    const secret = Buffer.alloc(32, 7);
    const oct = JSON.stringify({ keys: [{ kty: "oct", kid: "one", k: secret.toString("base64url") }] });
    const text = await new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid: "one" }).sign(secret);
    const authenticate = authenticator({ kind: "inline", jwks: oct });
    assert.equal(await refusal(text, authenticate), 'the token\'s algorithm "HS256" is not accepted');
  });

  test("refuses a public key that is used as a shared secret", async () => {
    const { keys } = JSON.parse(jwks);
    const secret = Buffer.from(JSON.stringify(keys[0]));
    const text = await new SignJWT(claims()).setProtectedHeader({ alg: "HS256", kid: "one" }).sign(secret);
    assert.equal(await refusal(text), 'the token\'s algorithm "HS256" is not accepted');
  });

  test("refuses a token whose algorithm is of another type than the key it names", async () => {
    const { privateKey: rsa } = await generateKeyPair("RS256");
    const text = await new SignJWT(claims()).setProtectedHeader({ alg: "RS256", kid: "one" }).sign(rsa);
    assert.equal(await refusal(text), 'the issuer has no key for the token\'s kid "one"');
  });

  test("refuses another algorithm than the key is meant for, although its type would do", async () => {
    const pair = await generateKeyPair("RS256");
    const keys = [{ ...(await exportJWK(pair.publicKey)), kid: "one", alg: "RS512" }];
    const authenticate = authenticator({ kind: "inline", jwks: JSON.stringify({ keys }) });
    const text = await new SignJWT(claims()).setProtectedHeader({ alg: "RS256", kid: "one" }).sign(pair.privateKey);
    assert.match(await refusal(text, authenticate), /no key for the token's kid/);
  });

  test("refuses a key that the token brings along", async () => {
    const pair = await generateKeyPair("ES256");
    const jwk = await exportJWK(pair.publicKey);
    const header = { alg: "ES256", kid: "one", jwk, jku: "https://evil/keys", x5u: "https://evil/cert" };
    const text = await new SignJWT(claims()).setProtectedHeader(header).sign(pair.privateKey);
    assert.equal(await refusal(text), "the token's signature is wrong");
  });

  test("refuses critical extensions that it does not know", async () => {
    const [, payload, signature] = (await token()).split(".");
    const header = Buffer.from(JSON.stringify({ alg: "ES256", kid: "one", crit: ["x"], x: 1 })).toString("base64url");
    assert.match(await refusal(`${header}.${payload}.${signature}`), /^the token is malformed/);
  });

  test("refuses huge claims before it parses them, and repeats no long ones", async () => {
    assert.equal(
      await refusal(await token({ more: "x".repeat(1_000_000) })),
      "the token has more than 16384 characters",
    );
    const long = await refusal(await token({ sub: "x".repeat(10_000) }));
    assert.ok(long.length < 400, long);
  });

  for (const [what, wrong] of Object.entries<Record<string, unknown>>({
    "an end that is no number": { exp: "tomorrow" },
    "a beginning that is no number": { nbf: {} },
    "a subject that is a list": { sub: ["system:serviceaccount:default:httpbin"] },
    "an audience that is an object": { aud: { "istio-ca": true } },
    "an issuer that is a list": { iss: [ISSUER] },
  })) {
    test(`refuses ${what}`, async () => {
      const payload = Buffer.from(JSON.stringify({ ...claims(), ...wrong }));
      const text = await new CompactSign(payload).setProtectedHeader({ alg: "ES256", kid: "one" }).sign(privateKey);
      assert.match(await refusal(text), /^the token/);
    });
  }

  for (const sub of [
    "alice",
    "system:serviceaccount:default",
    "system:serviceaccount:default:a:b",
    "system:serviceaccount::a",
    "system:serviceaccount:default/sa/root:a",
    "system:serviceaccount:default:a/../b",
    "system:serviceaccount:default:a\ninjected line",
    "system:node:default:a",
  ]) {
    test(`refuses the subject ${JSON.stringify(sub)}`, async () => {
      assert.match(await refusal(await token({ sub })), /is not system:serviceaccount:NAMESPACE:NAME$/);
    });
  }

  test("refuses what is no token at all", async () => {
    for (const text of ["x", "a.b.c", "e30.e30.", "....", "x".repeat(20_000)])
      assert.match(await refusal(text), /^the token /);
  });

  test("refuses every token while the keys cannot be had", async () => {
    const authenticate = authenticator({ kind: "uri", uri: "http://keys" }, () =>
      Promise.reject(new Error("no route")),
    );
    assert.equal(await refusal(await token(), authenticate), "the token cannot be checked: no route");
  });
});
