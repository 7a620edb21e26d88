import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { exportJWK, generateKeyPair, type JWK } from "jose";
import type { KeyLocation } from "./jwt-rule.ts";
import { keySetOf } from "./key-set.ts";

const URI: KeyLocation = { kind: "uri", uri: "https://issuer/keys" };
const NO_TOKEN = { payload: "", signature: "" };

describe("keySetOf()", () => {
  let jwk: JWK;
  before(async () => {
    jwk = await exportJWK((await generateKeyPair("ES256")).publicKey);
  });

  /** An issuer whose documents, clock and requests a test can see and change. */
  function issuer(documents: Record<string, unknown>) {
    const state = { now: 1_000_000, asked: [] as string[], documents };
    const fetchJson = async (url: string) => {
      state.asked.push(url);
      if (!(url in state.documents)) throw new Error(`nothing at ${url}`);
      return state.documents[url];
    };
    const keys = (location: KeyLocation) => {
      const find = keySetOf({ issuer: "https://issuer", keys: location }, { now: () => state.now, fetchJson });
      return async (kid: string) => find({ alg: "ES256", kid }, NO_TOKEN);
    };
    return { state, keys };
  }

  const set = (...kids: string[]) => ({ keys: kids.map((kid) => ({ ...jwk, kid })) });

  test("fetches once and keeps the keys", async () => {
    const { state, keys } = issuer({ "https://issuer/keys": set("a", "b") });
    const find = keys(URI);
    await Promise.all([find("a"), find("b"), find("a")]);
    await find("b");
    assert.deepEqual(state.asked, ["https://issuer/keys"]);
  });

  test("looks again for an unknown key id, but not more than once in 30 seconds", async () => {
    const { state, keys } = issuer({ "https://issuer/keys": set("a") });
    const find = keys(URI);
    await find("a");
    state.documents["https://issuer/keys"] = set("a", "new");
    await assert.rejects(find("new"), { code: "ERR_JWKS_NO_MATCHING_KEY" });
    assert.equal(state.asked.length, 1);
    state.now += 30_000;
    await find("new");
    assert.equal(state.asked.length, 2);
    for (let i = 0; i < 10; i++) await assert.rejects(find(`unknown-${i}`));
    assert.equal(state.asked.length, 2);
  });

  test("forgets a withdrawn key after ten minutes", async () => {
    const { state, keys } = issuer({ "https://issuer/keys": set("a", "withdrawn") });
    const find = keys(URI);
    await find("withdrawn");
    state.documents["https://issuer/keys"] = set("a");
    state.now += 600_000;
    await assert.rejects(find("withdrawn"), { code: "ERR_JWKS_NO_MATCHING_KEY" });
  });

  test("keeps the last keys while the issuer cannot be asked, and asks again every 30 seconds", async () => {
    const { state, keys } = issuer({ "https://issuer/keys": set("a", "withdrawn") });
    const find = keys(URI);
    await find("a");
    state.documents = {};
    state.now += 600_000;
    for (let i = 0; i < 3; i++) await find("a");
    await assert.rejects(find("unknown"), { code: "ERR_JWKS_NO_MATCHING_KEY" });
    assert.equal(state.asked.length, 2);
    state.documents = { "https://issuer/keys": set("a") };
    state.now += 30_000;
    await find("a");
    await assert.rejects(find("withdrawn"), { code: "ERR_JWKS_NO_MATCHING_KEY" });
    assert.equal(state.asked.length, 3);
  });

  test("tries again after a failure", async () => {
    const { state, keys } = issuer({});
    const find = keys(URI);
    await assert.rejects(find("a"), /nothing at/);
    state.documents["https://issuer/keys"] = set("a");
    await find("a");
  });

  test("finds the keys by OpenID discovery when the rule names no place", async () => {
    const { state, keys } = issuer({
      "https://issuer/.well-known/openid-configuration": { jwks_uri: "https://issuer/elsewhere" },
      "https://issuer/elsewhere": set("a"),
    });
    await keys({ kind: "discovery" })("a");
    assert.equal(state.asked.length, 2);
  });

  test("says that an answer is no key set or names none", async () => {
    const { keys } = issuer({ "https://issuer/keys": [1], "https://issuer/.well-known/openid-configuration": {} });
    await assert.rejects(keys(URI)("a"), { code: "KEYS_UNAVAILABLE", message: /no JSON Web Key Set/ });
    await assert.rejects(keys({ kind: "discovery" })("a"), { code: "KEYS_UNAVAILABLE", message: /no jwks_uri/ });
  });
});
