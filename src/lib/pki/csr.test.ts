import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { test } from "node:test";
import { certificateRequest } from "./csr.ts";
import { objectIdentifier, octetString, pem } from "./der.ts";

const whereOpenssl = { skip: spawnSync("openssl", ["version"]).status === 0 ? false : "no openssl" };
const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";

function openssl(request: string): string {
  const { stdout, stderr, status } = spawnSync("openssl", ["req", "-noout", "-text", "-verify"], {
    input: request,
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  return stdout + stderr;
}

function request(keys: { privateKey: KeyObject; publicKey: KeyObject }): string {
  return certificateRequest({ identity: IDENTITY, ...keys });
}

test(
  "certificateRequest() is verified by openssl for an RSA key and carries the identity and nothing else",
  whereOpenssl,
  () => {
    const text = openssl(request(generateKeyPairSync("rsa", { modulusLength: 2048 })));
    assert.match(text, /verify OK/);
    assert.match(
      text,
      /Subject Alternative Name: critical\s+URI:spiffe:\/\/cluster\.local\/ns\/default\/sa\/httpbin\n/,
    );
    assert.match(text, /Subject: *\n/);
    assert.match(text, /sha256WithRSAEncryption/);
  },
);

test(
  "certificateRequest() is verified by openssl for keys of a curve, with a hash of its strength",
  whereOpenssl,
  () => {
    for (const [namedCurve, algorithm] of [
      ["P-256", /ecdsa-with-SHA256/],
      ["P-384", /ecdsa-with-SHA384/],
    ] as const) {
      const text = openssl(request(generateKeyPairSync("ec", { namedCurve })));
      assert.match(text, /verify OK/);
      assert.match(text, algorithm);
    }
  },
);

test("DER lengths take one byte below 128 and more above", () => {
  assert.deepEqual([...octetString(Buffer.alloc(127)).subarray(0, 2)], [4, 127]);
  assert.deepEqual([...octetString(Buffer.alloc(128)).subarray(0, 3)], [4, 0x81, 128]);
  assert.deepEqual([...octetString(Buffer.alloc(65_536)).subarray(0, 5)], [4, 0x83, 1, 0, 0]);
});

test("objectIdentifier() writes large parts in base 128", () => {
  assert.equal(objectIdentifier("1.2.840.113549.1.9.14").toString("hex"), "06092a864886f70d01090e");
});

test("pem() breaks lines after 64 characters", () => {
  const lines = pem("X", Buffer.alloc(60)).split("\n");
  assert.deepEqual(
    lines.map((line) => line.length),
    [17, 64, 16, 15, 0],
  );
});
