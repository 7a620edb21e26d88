import assert from "node:assert/strict";
import { test } from "node:test";
import { selfSigned } from "../../../../test/support/certificates.ts";
import { parseObject } from "../parse-object.ts";

const [one, two] = [selfSigned("one"), selfSigned("two")];
const secret = (content: object) =>
  parseObject({ apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, ...content });
const problems = (content: object) => secret(content).problems.map(({ field, message }) => `${field} ${message}`);

test("a Secret with a certificate and its key is good", () => {
  const { object } = secret({ stringData: { "tls.crt": one.certificate, "tls.key": one.key } });
  assert.equal(object?.kind, "Secret");
});

test("a key that belongs to another certificate is an error", () => {
  assert.deepEqual(problems({ stringData: { cert: one.certificate, key: two.key } }), [
    `data["key"] is not the key of the certificate in "cert"`,
  ]);
});

test("what is no certificate, key or base64 is an error that does not quote it", () => {
  const said = [
    ...problems({ stringData: { cert: "hunter2", key: one.key } }),
    ...problems({ stringData: { cert: one.certificate, key: "hunter2" } }),
    ...problems({ data: { any: "hunter2!" } }),
    ...problems({ data: { any: 5 } }),
  ];
  assert.equal(said.length, 4);
  assert.ok(!said.join().includes("hunter2"));
});

test("a Secret of type kubernetes.io/tls needs both", () => {
  assert.deepEqual(problems({ type: "kubernetes.io/tls", stringData: { "tls.crt": one.certificate } }), [
    `data needs "tls.crt" and "tls.key", as its type says`,
  ]);
});
