import assert from "node:assert/strict";
import { test } from "node:test";
import { pem } from "./der.ts";
import { parsePem, pemCertificates } from "./pem.ts";

test("pem() and parsePem() are a round trip", () => {
  const der = Buffer.from(Array.from({ length: 200 }, (_, i) => i));
  const text = pem("CERTIFICATE", der);
  assert.deepEqual(parsePem(text), [{ label: "CERTIFICATE", der, pem: text }]);
});

test("parsePem() keeps the order of blocks and skips text between them", () => {
  const text = `Subject: x\n${pem("CERTIFICATE", Buffer.from("a"))}noise\r\n${pem("PRIVATE KEY", Buffer.from("b"))}`;
  assert.deepEqual(
    parsePem(text).map((block) => [block.label, block.der.toString()]),
    [
      ["CERTIFICATE", "a"],
      ["PRIVATE KEY", "b"],
    ],
  );
});

test("parsePem() reads Windows line ends", () => {
  const text = pem("CERTIFICATE", Buffer.alloc(100, 7));
  assert.deepEqual(parsePem(text.replaceAll("\n", "\r\n"))[0]?.der, Buffer.alloc(100, 7));
});

test("parsePem() finds nothing in garbage, in a block without an end and in one whose end has another label", () => {
  assert.deepEqual(parsePem(""), []);
  assert.deepEqual(parsePem("hello"), []);
  assert.deepEqual(parsePem("-----BEGIN CERTIFICATE-----\nAAAA\n"), []);
  assert.deepEqual(parsePem("-----BEGIN CERTIFICATE-----\nAAAA\n-----END PRIVATE KEY-----\n"), []);
});

test("pemCertificates() leaves out keys", () => {
  const certificate = pem("CERTIFICATE", Buffer.from("a"));
  assert.deepEqual(pemCertificates(pem("PRIVATE KEY", Buffer.from("b")) + certificate), [certificate]);
});
