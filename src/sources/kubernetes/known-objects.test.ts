import assert from "node:assert/strict";
import { test } from "node:test";
import { KnownObjects } from "./known-objects.ts";

const KIND = "AuthorizationPolicy";

function policy(resourceVersion: string, spec: object, labels: Readonly<Record<string, string>> = {}) {
  const metadata = { name: "p", namespace: "foo", labels, resourceVersion };
  return { apiVersion: "security.istio.io/v1", kind: KIND, metadata, spec };
}

const GOOD = { action: "DENY", rules: [{}] };
const BAD = { action: "DENIED", rules: [{}] };

test("a security object that was never readable has a stand-in until it is repaired or deleted", () => {
  const known = new KnownObjects("default");
  const denying = () => known.collection().unreadable.map(({ metadata }) => metadata.name);
  known.put(KIND, policy("1", BAD));
  assert.deepEqual(denying(), ["p"]);
  known.put(KIND, policy("2", GOOD));
  assert.deepEqual(denying(), []);
  known.put(KIND, policy("3", BAD));
  assert.deepEqual(denying(), [], "the last good version counts");
  assert.equal(known.collection().objects.length, 1);
  known.remove(KIND, policy("3", BAD));
  known.put(KIND, policy("4", BAD));
  assert.deepEqual(denying(), ["p"]);
  known.keepOnly(KIND, []);
  assert.deepEqual(denying(), []);
});

test("security objects of another revision have none", () => {
  const known = new KnownObjects("default");
  known.put(KIND, policy("1", BAD, { "istio.io/rev": "canary" }));
  assert.deepEqual(known.collection().unreadable, []);
});
