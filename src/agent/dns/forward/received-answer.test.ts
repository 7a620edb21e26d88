import assert from "node:assert/strict";
import { test } from "node:test";
import packet, { type Answer } from "dns-packet";
import { isQuery, parseQuery, type Query } from "../message.ts";
import { readRecords } from "../records.ts";
import { receivedAnswer } from "./received-answer.ts";

const RECORDS: Answer[] = [
  { type: "CNAME", name: "www.example", ttl: 60, data: "web.example" },
  { type: "A", name: "web.example", ttl: 60, data: "192.0.2.1" },
  { type: "AAAA", name: "web.example", ttl: 60, data: "2001:db8::1" },
  { type: "MX", name: "web.example", ttl: 60, data: { preference: 10, exchange: "mail.example" } },
  { type: "SRV", name: "web.example", ttl: 60, data: { port: 80, target: "a.example", priority: 1, weight: 2 } },
  { type: "TXT", name: "web.example", ttl: 60, data: ["text"] },
];
const SOA: Answer = {
  type: "SOA",
  name: "example",
  ttl: 600,
  data: { mname: "ns.example", rname: "admin.example", serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 20 },
};

function question(name = "www.example"): Query {
  const query = parseQuery(packet.encode({ type: "query", id: 7, questions: [{ type: "A", name }] }));
  if (!isQuery(query)) throw new Error("no question");
  return query;
}

const reply = (more: Partial<packet.Packet> = {}): Buffer =>
  packet.encode({
    type: "response",
    id: 7,
    questions: [{ type: "A", name: "www.example" }],
    answers: RECORDS,
    authorities: [SOA],
    ...more,
  });

function changed(change: (bytes: Buffer) => void, from = reply()): Buffer {
  const bytes = Buffer.from(from);
  change(bytes);
  return bytes;
}

test("receivedAnswer() takes answers of all kinds as they are", () => {
  const query = question();
  const good = [
    reply(),
    reply({ answers: [], flags: 3 }),
    reply({ questions: [{ type: "A", name: "WWW.Example" }] }),
    Buffer.concat([reply(), Buffer.from("behind the end")]),
  ];
  for (const message of good) assert.deepEqual(receivedAnswer(message, query), { answer: message });
});

test("receivedAnswer() rejects an answer without the question, a header alone included", () => {
  for (const message of [
    reply({ questions: [], answers: [], flags: 2 }),
    reply({ questions: [] }),
    reply({ flags: 5 }).subarray(0, 12),
    changed((bytes) => bytes.writeUInt16BE(0, 4)),
  ])
    assert.deepEqual(receivedAnswer(message, question()), { problem: "sent an answer without the question" });
});

test("receivedAnswer() refuses what cannot be read, and what answers another question", () => {
  const query = question();
  const { questionEnd } = query;
  const firstData = questionEnd + "www.example".length + 2 + 10;
  const unreadable = [
    reply().subarray(0, -1),
    changed((bytes) => bytes.writeUInt16BE(9, 6)),
    changed((bytes) => bytes.writeUInt16BE(0xc000 | questionEnd, questionEnd)),
    changed((bytes) => bytes.writeUInt16BE(0xc000 | 0x3fff, firstData)),
    changed((bytes) => bytes.writeUInt8(0x80, firstData)),
    changed((bytes) => bytes.writeUInt16BE(5, firstData - 2)),
  ];
  for (const message of unreadable)
    assert.deepEqual(receivedAnswer(message, query), { problem: "sent an answer that cannot be read" });
  assert.deepEqual(receivedAnswer(query.bytes, query), { problem: "sent a question in place of an answer" });
  assert.deepEqual(receivedAnswer(Buffer.from([0, 7, 1]), query), { problem: "sent 3 bytes, which is no answer" });
  const other = { problem: "answered another question" };
  assert.deepEqual(receivedAnswer(reply({ questions: [{ type: "A", name: "vvv.example" }] }), query), other);
  assert.deepEqual(receivedAnswer(reply({ questions: [{ type: "AAAA", name: "www.example" }] }), query), other);
  const two = [
    { type: "A", name: "www.example" },
    { type: "A", name: "www.example" },
  ] as const;
  assert.deepEqual(receivedAnswer(reply({ questions: [...two] }), query), other);
  const otherClass = changed((bytes) => bytes.writeUInt16BE(3, questionEnd - 2));
  assert.deepEqual(receivedAnswer(otherClass, query), other);
});

test("receivedAnswer() does not let a message with another id, or with none, end the wait", () => {
  for (const message of [reply({ id: 8 }), Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.from([7]), Buffer.alloc(0)])
    assert.equal(receivedAnswer(message, question()), "strange");
});

test("receivedAnswer() lives through messages that are changed anywhere; what it takes others can read", () => {
  const query = question();
  const random = numbers(1);
  let taken = 0;
  for (let i = 0; i < 20_000; i++) {
    const message = changed((bytes) => {
      for (let left = 1 + (random() % 4); left > 0; left--) bytes[random() % bytes.length] = random() % 256;
    }).subarray(0, random() % 3 === 0 ? random() % 250 : undefined);
    const received = receivedAnswer(message, query);
    if (received === "strange" || "problem" in received || !hasKnownTypes(received.answer)) continue;
    taken++;
    const { id, questions = [] } = packet.decode(received.answer);
    assert.equal(id, 7);
    assert.equal(questions[0]?.name.toLowerCase(), "www.example");
  }
  assert.ok(taken > 1_000, `only ${taken} were taken`);
});

const KNOWN_TYPES = [1, 2, 5, 6, 12, 15, 16, 28, 33, 39];

/** Only such types that all readers of answers have in common. */
function hasKnownTypes(message: Buffer): boolean {
  return (readRecords(message, question().questionEnd) ?? []).every(({ type }) => KNOWN_TYPES.includes(type));
}

/** The same numbers each time. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return state >>> 8;
  };
}
