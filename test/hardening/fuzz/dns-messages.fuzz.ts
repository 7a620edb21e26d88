/** DNS: questions of applications, and answers of name servers. */
import assert from "node:assert/strict";
import { receivedAnswer } from "#agent/dns/forward/received-answer.ts";
import {
  addressRecord,
  answer,
  cnameRecord,
  errorAnswer,
  HEADER_BYTES,
  isQuery,
  parseQuery,
} from "#agent/dns/message.ts";
import { isReadable, readRecords } from "#agent/dns/records.ts";
import type { FuzzTarget } from "./target.ts";

const RECORDS = { cname: cnameRecord("b.example."), addresses: [addressRecord("10.0.0.1"), addressRecord("fd00::1")] };
const QUESTION = parseQuery(Buffer.from("12340100000100000000000001610765786d61706c6503636f6d0000010001", "hex"));

export const target: FuzzTarget = {
  maxBytes: 1024,
  dictionary: [
    "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00",
    "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00",
    "\x01a\x07example\x03com\x00",
    "\x00\x01\x00\x01",
    "\xc0\x0c",
    "\x00\x00\x29\x10\x00\x00\x00\x00\x00\x00\x00",
  ],
  run(input) {
    const query = parseQuery(input);
    if (isQuery(query)) {
      assert.ok(query.questionEnd <= input.length && query.name.endsWith("."));
      const reply = answer(query, RECORDS, 512);
      assert.ok(reply.length <= Math.max(512, query.questionEnd), "an answer keeps to its limit");
      assert.ok(reply.length <= input.length + 256, "an answer is not much larger than its question");
      assert.ok(readRecords(reply, query.questionEnd) !== undefined, "our own answers can be read");
      receivedAnswer(reply, query);
    } else if (query !== undefined) assert.ok(errorAnswer(input, query.rcode).length <= HEADER_BYTES);
    if (isQuery(QUESTION)) receivedAnswer(input, QUESTION);
    if (input.length >= HEADER_BYTES) {
      for (const record of readRecords(input, HEADER_BYTES) ?? []) isReadable(input, record);
    }
  },
};
