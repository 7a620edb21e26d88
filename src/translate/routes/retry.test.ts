import assert from "node:assert/strict";
import { test } from "node:test";
import { retryPolicy } from "./retry.ts";

test("two retries where nobody says, none where zero are asked for", () => {
  assert.equal(retryPolicy(undefined, false)?.numRetries, 2);
  assert.equal(retryPolicy({ attempts: 0 }, false), undefined);
  assert.equal(retryPolicy({}, false), undefined);
  assert.equal(retryPolicy({ attempts: 5 }, false)?.numRetries, 5);
});

test("status codes among the conditions imply the condition on status codes", () => {
  const conditions = (retryOn: string) => {
    const policy = retryPolicy({ attempts: 1, retryOn }, false);
    return [policy?.retryOn, policy?.retriableStatusCodes];
  };
  assert.deepEqual(conditions("5xx"), ["5xx", []]);
  assert.deepEqual(conditions("gateway-error, 503,504"), ["gateway-error,retriable-status-codes", [503, 504]]);
  assert.deepEqual(conditions("503,retriable-status-codes"), ["retriable-status-codes", [503]]);
});

test("a retry avoids the endpoint that failed, unless hashing chose it or the route says otherwise", () => {
  const avoids = (...args: Parameters<typeof retryPolicy>) => retryPolicy(...args)?.retryHostPredicate !== undefined;
  assert.equal(avoids({ attempts: 1 }, false), true);
  assert.equal(avoids({ attempts: 1 }, true), false);
  assert.equal(avoids({ attempts: 1, retryIgnorePreviousHosts: true }, true), true);
  assert.equal(avoids({ attempts: 1, retryIgnorePreviousHosts: false }, false), false);
});
