import assert from "node:assert/strict";
import { test } from "node:test";
import type { FramedMessage } from "#lib/grpc/messages.ts";
import { parseDeltaResponse } from "#protocol/messages/delta-response.ts";
import { parseStateResponse } from "#protocol/messages/state-response.ts";
import { ENDPOINT_TYPE, EXTENSION_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { recipe } from "#translate/recipes/recipe.ts";
import { builtResource } from "./built-resource.ts";
import { Responses } from "./responses.ts";

const resource = (name: string, size = 1) =>
  builtResource(LISTENER_TYPE, recipe({ name, input: {}, build: () => new Uint8Array() }), new Uint8Array(size));
const telling = (resources: readonly ReturnType<typeof resource>[], removed = ["gone"]) => ({
  typeUrl: LISTENER_TYPE,
  draft: { resources, repeated: [], removed },
});
/** Without the head of five bytes. */
const bytesOf = ({ framed }: FramedMessage) => Buffer.concat(framed).subarray(5);
const responses = (maxBytes = 1_000_000) => new Responses({ maxBytes, controlPlane: "me" });

test("the same content is the same buffer, other content another one with another nonce", () => {
  const encoder = responses();
  const [a, b] = [resource("a"), resource("b")];
  const one = encoder.encode("delta", telling([a, b]), "1");
  assert.equal(encoder.encode("delta", telling([a, b]), "1"), one);
  for (const other of [telling([b, a]), telling([a]), telling([a, b], [])]) {
    assert.notEqual(encoder.encode("delta", other, "1").nonce, one.nonce);
  }
});

test("a response says what it is made of", () => {
  const { nonce, message } = responses().encode("delta", telling([resource("a"), resource("b")]), "7");
  const parsed = parseDeltaResponse(bytesOf(message));
  assert.deepEqual(
    [parsed.nonce, parsed.systemVersion, parsed.resources.map(({ name }) => name), parsed.removed],
    [nonce, "7", ["a", "b"], ["gone"]],
  );
});

test("no more is kept than allowed; what was used last stays", () => {
  const encoder = responses(2_500);
  const [a, b, c] = ["a", "b", "c"].map((name) => telling([resource(name, 1_000)]));
  assert.ok(a && b && c);
  const kept = encoder.encode("delta", a, "");
  encoder.encode("delta", b, "");
  encoder.encode("delta", a, "");
  const third = encoder.encode("delta", c, "");
  assert.equal(encoder.encode("delta", a, ""), kept);
  assert.equal(encoder.encode("delta", c, ""), third);
});

test("nothing is kept after clearing", () => {
  const encoder = responses();
  const a = telling([resource("a")]);
  const before = encoder.encode("delta", a, "");
  encoder.clear();
  assert.notEqual(encoder.encode("delta", a, ""), before);
});

test("over state of the world the same resources are plain messages", () => {
  const both = telling([resource("a", 300), resource("b")]);
  const { nonce, message } = responses().encode("state", both, "7");
  const parsed = parseStateResponse(bytesOf(message));
  assert.deepEqual(
    [parsed.nonce, parsed.version, parsed.typeUrl, parsed.resources.map(({ length }) => length)],
    [nonce, "7", LISTENER_TYPE, [300, 1]],
  );
});

test("over state of the world endpoints that do not exist are empty ones", () => {
  const none = { typeUrl: ENDPOINT_TYPE, draft: { resources: [], repeated: [], removed: ["x"] } };
  const { resources } = parseStateResponse(bytesOf(responses().encode("state", none, "1").message));
  assert.deepEqual(
    resources.map((bytes) => Buffer.from(bytes).toString()),
    ["\n\u0001x"],
  );
});

test("an extension that is gone is not named: listeners that drain still use it", () => {
  const gone = { typeUrl: EXTENSION_TYPE, draft: { resources: [], repeated: [], removed: ["x"] } };
  assert.deepEqual(parseDeltaResponse(bytesOf(responses().encode("delta", gone, "1").message)).removed, []);
});
