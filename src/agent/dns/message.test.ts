import assert from "node:assert/strict";
import { test } from "node:test";
import { addressRecord, isQuery, parseQuery, RCODE_FORMAT_ERROR } from "./message.ts";

test("addressRecord() writes IPv6 addresses of every form", () => {
  const data = (address: string) => addressRecord(address).subarray(-16).toString("hex");
  assert.equal(data("::"), "0".repeat(32));
  assert.equal(data("2001:db8:0:0:0:ff00:42:8329"), "20010db8000000000000ff0000428329");
  assert.equal(data("2001:db8::ff00:42:8329"), "20010db8000000000000ff0000428329");
  assert.equal(data("fe80::1%eth0"), "fe800000000000000000000000000001");
  assert.equal(data("::ffff:192.0.2.1"), "00000000000000000000ffffc0000201");
});

/** A question for a name given by its labels. */
function question(labels: readonly string[]): Buffer {
  const head = Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  const name = labels.flatMap((label) => [Buffer.of(label.length), Buffer.from(label, "latin1")]);
  return Buffer.concat([head, ...name, Buffer.from([0, 0, 1, 0, 1])]);
}

function nameOf(labels: readonly string[]): string | undefined {
  const parsed = parseQuery(question(labels));
  return isQuery(parsed) ? parsed.name : undefined;
}

test("parseQuery() gives names in lower case with a final dot", () => {
  assert.equal(nameOf(["Reviews", "DEFAULT", "svc-1_x"]), "reviews.default.svc-1_x.");
  assert.equal(nameOf([]), ".");
  assert.equal(nameOf(["[@Z`{"]), "[@z`{.");
  assert.equal(nameOf(["A.b", "C"]), "a\\.b.c.");
  assert.equal(nameOf(["\u00dcber", "C"]), "\u00fcber.c.");
});

test("parseQuery() takes names as long as the protocol allows, and no longer", () => {
  const label = "x".repeat(63);
  assert.equal(nameOf([label, label, label, "y".repeat(61)])?.length, 254);
  assert.deepEqual(parseQuery(question([label, label, label, "y".repeat(62)])), { rcode: RCODE_FORMAT_ERROR });
  assert.deepEqual(parseQuery(question([label, label, label, label, label])), { rcode: RCODE_FORMAT_ERROR });
  assert.deepEqual(parseQuery(question(["x"]).subarray(0, 14)), { rcode: RCODE_FORMAT_ERROR });
});

test("parseQuery() refuses other operations, and other than one question with few records", () => {
  const refusal = (at: number, value: number) => {
    const bytes = question(["x"]);
    bytes.writeUInt16BE(value, at);
    const parsed = parseQuery(bytes);
    return isQuery(parsed) ? "taken" : parsed?.rcode;
  };
  assert.deepEqual([refusal(4, 0), refusal(4, 2), refusal(4, 1)], [RCODE_FORMAT_ERROR, RCODE_FORMAT_ERROR, "taken"]);
  assert.deepEqual([refusal(6, 2), refusal(8, 2), refusal(10, 3)], Array(3).fill(RCODE_FORMAT_ERROR));
  assert.deepEqual([refusal(6, 1), refusal(8, 1), refusal(10, 2)], Array(3).fill("taken"));
  const [status, notify, update] = [0x1000, 0x2000, 0x2800];
  assert.deepEqual([refusal(2, status), refusal(2, notify), refusal(2, update)], [4, "taken", 4]);
});
