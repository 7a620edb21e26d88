import assert from "node:assert/strict";
import { test } from "node:test";
import { AnswerReader } from "./answer-reader.ts";

/** Head and body of an answer that comes in pieces of one size, and whether it is complete. */
function readInto(text: string, size: number) {
  const reader = new AnswerReader();
  const parts: string[] = [];
  for (let at = 0; at < text.length; at += size)
    parts.push(...reader.read(Buffer.from(text.slice(at, at + size), "latin1")).map((part) => part.toString("latin1")));
  return { head: reader.head, body: parts.join(""), isComplete: reader.isComplete, close: () => reader.close() };
}

const ANSWERS: Readonly<Record<string, string>> = {
  "with a length": "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nX-A:  b \r\nX-A: c\r\n\r\na 1\nb 2",
  "in chunks":
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nX-A: b\r\n\r\n3\r\na 1\r\n004 ; x=y\r\n\nb 2\r\n0\r\nTrailer: x\r\n\r\n",
  "after another": "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.0 200\nx-a: b\ncontent-length: 7\n\na 1\nb 2",
};

test("AnswerReader reads answers however they are cut", () => {
  for (const [name, text] of Object.entries(ANSWERS))
    for (let size = 1; size < text.length + 1; size++) {
      const { head, body, isComplete, close } = readInto(text, size);
      assert.deepEqual([head?.status, head?.headers["x-a"], body, isComplete], [200, "b", "a 1\nb 2", true], name);
      close();
    }
});

test("AnswerReader takes the end of the connection for that of an answer without a length", () => {
  const { body, isComplete, close } = readInto("HTTP/1.1 200 OK\r\n\r\na 1\n", 5);
  assert.deepEqual([body, isComplete], ["a 1\n", false]);
  close();
});

test("AnswerReader knows answers without a body, and reads nothing after the end", () => {
  for (const head of ["204 No Content\r\n", "304 Not Modified\r\n", "200 OK\r\ncontent-length: 0\r\n"])
    assert.deepEqual(
      [readInto(`HTTP/1.1 ${head}\r\nmore`, 9).body, readInto(`HTTP/1.1 ${head}\r\n`, 9).isComplete],
      ["", true],
    );
});

test("AnswerReader refuses what is no answer", () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ["SSH-2.0-OpenSSH\r\n", /"SSH-2.0-OpenSSH" instead of a status/],
    ["HTTP/1.1 200 OK\r\nnonsense\r\n", /the header "nonsense"/],
    ["HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n", /the length "-1"/],
    ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", /"zz" instead of the size of a chunk/],
    ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n", /a chunk that is longer than it says/],
    [`HTTP/1.1 200 OK\r\n${"x-a: b\r\n".repeat(10_000)}`, /more than 65536 bytes of headers/],
    [`HTTP/1.1 200 OK\r\nx-a: ${"b".repeat(70_000)}`, /more than 65536 bytes of headers/],
  ];
  for (const [text, expected] of cases)
    assert.throws(() => readInto(text, 1000), { code: "HTTP_FAILED", message: expected });
});

test("AnswerReader says when the connection ends before the answer", () => {
  for (const text of [
    "",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nab",
    `${ANSWERS["in chunks"]}`.slice(0, -2),
  ])
    assert.throws(() => readInto(text, 7).close(), /the connection was closed before the answer ended/);
});
