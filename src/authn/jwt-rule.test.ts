import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJwtRule } from "./jwt-rule.ts";

test("parseJwtRule() reads the address of the keys under both spellings", () => {
  for (const name of ["jwks_uri", "jwksUri"]) {
    const rule = parseJwtRule(
      JSON.stringify({ issuer: "me", [name]: "http://127.0.0.1:18099/jwks.json", audiences: ["a"] }),
    );
    assert.deepEqual(rule, {
      value: { issuer: "me", audiences: ["a"], keys: { kind: "uri", uri: "http://127.0.0.1:18099/jwks.json" } },
      problems: [],
    });
  }
});

test("parseJwtRule() prefers inline keys, and without any place it means discovery", () => {
  assert.deepEqual(parseJwtRule('{"issuer":"me","jwks":"{\\"keys\\":[]}","jwksUri":"http://x"}').value?.keys, {
    kind: "inline",
    jwks: '{"keys":[]}',
  });
  assert.deepEqual(parseJwtRule('{"issuer":"me"}').value?.keys, { kind: "discovery" });
});

test("parseJwtRule() takes audience istio-ca when none is named", () => {
  assert.deepEqual(parseJwtRule('{"issuer":"me"}').value?.audiences, ["istio-ca"]);
});

const BAD: Readonly<Record<string, string>> = {
  "": "",
  "not json": "",
  "[]": "",
  null: "",
  "{}": "issuer",
  '{"issuer":5}': "issuer",
  '{"issuer":"me","audiences":"istio-ca"}': "audiences",
  '{"issuer":"me","audiences":[1]}': "audiences",
  '{"issuer":"me","jwks":"{"}': "jwks",
  '{"issuer":"me","jwks":"{}"}': "jwks",
  '{"issuer":"me","jwksUri":"file:///etc/passwd"}': "jwksUri",
  '{"issuer":"me","jwksUri":"nonsense"}': "jwksUri",
};
for (const [text, field] of Object.entries(BAD)) {
  test(`parseJwtRule() refuses ${text}`, () => {
    const { value, problems } = parseJwtRule(text);
    assert.equal(value, undefined);
    assert.equal(problems[0]?.field, field);
  });
}

test("parseJwtRule() reports every problem, not the first", () => {
  const { problems } = parseJwtRule('{"audiences":7,"jwks":"x","jwksUri":"x"}');
  assert.deepEqual(
    problems.map((problem) => problem.field),
    ["issuer", "audiences", "jwks", "jwksUri"],
  );
});
