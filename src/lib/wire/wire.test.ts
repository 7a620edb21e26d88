import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { IstioCertificateRequestSchema } from "#gen/istio/v1/auth/ca_pb.ts";
import { readMapEntry, readMessage, readString } from "./read.ts";
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
