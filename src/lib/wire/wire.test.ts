import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { IstioCertificateRequestSchema } from "#gen/istio/v1/auth/ca_pb.ts";
import { readField, readMapEntry, readMessage, readString, readText } from "./read.ts";
import { rewriteMessage } from "./rewrite.ts";
import { MessageWriter } from "./write.ts";

test("MessageWriter writes what a generated decoder reads", () => {
  const bytes = new MessageWriter().string(1, "csr").varint(3, 86_400).bytes(4, new Uint8Array()).finish();
  const message = fromBinary(IstioCertificateRequestSchema, bytes);
  assert.equal(message.csr, "csr");
  assert.equal(message.validityDuration, 86_400n);
  assert.deepEqual(message.metadata, {});
});

test("MessageWriter leaves empty strings and zeros out", () => {
  assert.equal(new MessageWriter().string(1, "").varint(3, 0).finish().length, 0);
});

test("readMessage() gives map entries and strings and skips what nobody asked for", () => {
  const bytes = toBinary(
    NameTableSchema,
    create(NameTableSchema, { table: { "a.example": { ips: ["1.1.1.1", "2.2.2.2"], registry: "External" } } }),
  );
  const ips: string[] = [];
  const hosts: string[] = [];
  readMessage(bytes, {
    bytes: {
      1: (entry) => {
        const { key, value } = readMapEntry(entry);
        hosts.push(key);
        readMessage(value, { bytes: { 1: (ip) => ips.push(readString(ip)) } });
      },
    },
  });
  assert.deepEqual([hosts, ips], [["a.example"], ["1.1.1.1", "2.2.2.2"]]);
});

test("readMessage() skips a field whose wire type is not the expected one", () => {
  const bytes = new MessageWriter().varint(1, 7).string(2, "kept").finish();
  const seen: string[] = [];
  readMessage(bytes, { bytes: { 1: () => seen.push("wrong"), 2: (value) => seen.push(readString(value)) } });
  readMessage(bytes, { varint: { 1: (value) => seen.push(String(value)), 2: () => seen.push("wrong") } });
  assert.deepEqual(seen, ["kept", "7"]);
});

test("readMessage() throws on a truncated message", () => {
  const bytes = new MessageWriter().string(1, "long enough").finish();
  assert.throws(() => readMessage(bytes.subarray(0, 5), { bytes: { 1: () => undefined } }));
  assert.throws(() => readMessage(bytes.subarray(0, 5), {}));
});

test("readField() and readText() give the last value of a field, or none", () => {
  const bytes = new MessageWriter().string(1, "a").string(1, "b").varint(2, 3).finish();
  assert.equal(readText(bytes, 1), "b");
  assert.equal(readField(bytes, 2), undefined);
  assert.equal(readText(bytes, 9), "");
});

test("readMessage() reads doubles", () => {
  const value = toBinary(ValueSchema, create(ValueSchema, { kind: { case: "numberValue", value: 1.5 } }));
  const seen: number[] = [];
  readMessage(value, { double: { 2: (number) => void seen.push(number) } });
  assert.deepEqual(seen, [1.5]);
});

test("rewriteMessage() replaces and drops fields and keeps all others as they are", () => {
  const bytes = new MessageWriter().string(1, "one").varint(2, 2).string(3, "three").string(9, "unknown").finish();
  const rewritten = rewriteMessage(bytes, { 1: () => undefined, 3: (old) => Buffer.concat([old, Buffer.from("!")]) });
  assert.deepEqual(
    Buffer.from(rewritten),
    Buffer.from(new MessageWriter().varint(2, 2).string(3, "three!").string(9, "unknown").finish()),
  );
  assert.deepEqual(Buffer.from(rewriteMessage(bytes, {})), Buffer.from(bytes));
  assert.throws(() => rewriteMessage(bytes.subarray(0, 3), {}));
});
