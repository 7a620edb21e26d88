import assert from "node:assert/strict";
import { test } from "node:test";
import { formatListenAddress, parseListenAddress } from "./listen-address.ts";

const GOOD: Readonly<Record<string, [string, number]>> = {
  ":15010": ["", 15010],
  "127.0.0.1:0": ["127.0.0.1", 0],
  "127.0.0.1:": ["127.0.0.1", 0],
  "localhost:8080": ["localhost", 8080],
  "[::1]:8080": ["::1", 8080],
  "[::]:65535": ["::", 65535],
};
for (const [text, [host, port]] of Object.entries(GOOD)) {
  test(`parseListenAddress() reads ${text}`, () => {
    assert.deepEqual(parseListenAddress(text), { kind: "on", host, port });
  });
}

test("parseListenAddress() reads the empty text as off", () => {
  assert.deepEqual(parseListenAddress(""), { kind: "off" });
});

for (const text of [
  "8080",
  "localhost",
  ":http",
  "::1:8080",
  "[::1]",
  "[::1",
  "[host]:80",
  ":65536",
  ":-1",
  "a:1:2",
  " :1",
]) {
  test(`parseListenAddress() refuses "${text}" and quotes it`, () => {
    const parsed = parseListenAddress(text);
    assert.ok(parsed.kind === "wrong" && parsed.reason.includes(`"${text}"`), JSON.stringify(parsed));
  });
}

test("formatListenAddress() puts IPv6 in brackets", () => {
  assert.equal(formatListenAddress({ host: "::", port: 1 }), "[::]:1");
  assert.equal(formatListenAddress({ host: "127.0.0.1", port: 1 }), "127.0.0.1:1");
  assert.equal(formatListenAddress({ host: "", port: 1 }), ":1");
});
