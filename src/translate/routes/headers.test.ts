import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderValueOption_HeaderAppendAction as AppendAction } from "#gen/envoy/config/core/v3/base_pb.ts";
import { authorityOf, headerChanges } from "./headers.ts";

test("what is set replaces, what is added does not, both in order of names", () => {
  const { requestHeadersToAdd } = headerChanges({ request: { set: { b: "1", a: "2" }, add: { c: "3" } } });
  assert.deepEqual(
    requestHeadersToAdd.map(({ header, appendAction }) => [header?.key, header?.value, appendAction]),
    [
      ["a", "2", AppendAction.OVERWRITE_IF_EXISTS_OR_ADD],
      ["b", "1", AppendAction.OVERWRITE_IF_EXISTS_OR_ADD],
      ["c", "3", AppendAction.APPEND_IF_EXISTS_OR_ADD],
    ],
  );
});

test("the host is no header, nor is what Envoy keeps for itself or cannot send", () => {
  const set = { ":authority": "a", Host: "b", "": "c", "x\ny": "d", z: "e\nf", ok: "g" };
  const changes = headerChanges({ request: { set, remove: ["Host", ":path", "x"] }, response: { set, remove: ["y"] } });
  for (const added of [changes.requestHeadersToAdd, changes.responseHeadersToAdd]) {
    assert.deepEqual(
      added.map(({ header }) => header?.key),
      ["ok"],
    );
  }
  assert.deepEqual(changes.requestHeadersToRemove, ["x"]);
  assert.deepEqual(changes.responseHeadersToRemove, ["y"]);
});

test("a command that Envoy does not know is sent as it was written", () => {
  const [header] = headerChanges({ request: { set: { a: "%FOO% %PROTOCOL%" } } }).requestHeadersToAdd;
  assert.equal(header?.header?.value, "%%FOO%% %PROTOCOL%");
});

test("the host that a route sets is found under both of its names", () => {
  assert.equal(authorityOf({ request: { set: { ":authority": "a" } } }), "a");
  assert.equal(authorityOf({ request: { add: { HOST: "b" } } }), "b");
  assert.equal(authorityOf({ request: { set: { host: "a" }, add: { host: "b" } } }), "a");
  assert.equal(authorityOf({ response: { set: { host: "a" } } }), undefined);
  assert.equal(authorityOf(undefined), undefined);
});
