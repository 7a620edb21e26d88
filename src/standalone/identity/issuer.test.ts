import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { jwtAuthenticator } from "#authn/jwt.ts";
import { parseJwtRule } from "#authn/jwt-rule.ts";
import { openIssuer, TOKEN_REFRESH_MS } from "./issuer.ts";

/** The key belongs to root, whoever runs the mesh. */
const NOT_ROOT = process.getuid?.() === 0 ? false : "needs root";

async function folder(): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(tmpdir(), "issuer-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}

function authenticator(jwtRule: string, now: number) {
  const { value, problems } = parseJwtRule(jwtRule);
  assert.ok(value, JSON.stringify(problems));
  return jwtAuthenticator(value, {
    trustDomain: () => "cluster.local",
    now: () => now,
  });
}

test("openIssuer() makes tokens that the control plane believes by its rule", { skip: NOT_ROOT }, async () => {
  await using home = await folder();
  const issuer = await openIssuer(home.path);
  const authenticate = authenticator(issuer.jwtRule, Date.now());
  const result = await authenticate({
    authorization: `Bearer ${await issuer.token("shop", "web")}`,
    certificate: undefined,
  });
  assert.deepEqual(result, {
    caller: {
      identity: "spiffe://cluster.local/ns/shop/sa/web",
      namespace: "shop",
      serviceAccount: "web",
      provedBy: "jwt",
    },
  });
});

test("openIssuer() keeps its key, readable for root alone, so that a restarted mesh believes older tokens", {
  skip: NOT_ROOT,
}, async () => {
  await using home = await folder();
  const token = await (await openIssuer(home.path)).token("shop", "web");
  const again = await openIssuer(home.path);
  const result = await authenticator(
    again.jwtRule,
    Date.now(),
  )({ authorization: `Bearer ${token}`, certificate: undefined });
  assert.ok(result !== undefined && "caller" in result);
  assert.equal((await stat(join(home.path, "key.json"))).mode & 0o777, 0o600);
});

test("openIssuer() gives tokens that end, but not before they are renewed", { skip: NOT_ROOT }, async () => {
  await using home = await folder();
  const now = Date.now();
  const issuer = await openIssuer(home.path, () => now);
  const authorization = `Bearer ${await issuer.token("shop", "web")}`;
  const renewed = await authenticator(
    issuer.jwtRule,
    now + TOKEN_REFRESH_MS,
  )({ authorization, certificate: undefined });
  assert.ok(renewed !== undefined && "caller" in renewed);
  const late = await authenticator(issuer.jwtRule, now + 13 * 3600 * 1000)({ authorization, certificate: undefined });
  assert.ok(late !== undefined && "refused" in late);
});

test("openIssuer() says which file to remove when the key is broken", async () => {
  await using home = await folder();
  for (const text of ["not json", "{}"]) {
    await writeFile(join(home.path, "key.json"), text);
    await assert.rejects(openIssuer(home.path), { code: "ISSUER_KEY_INVALID", message: /key\.json": remove it/ });
  }
});
