import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { certificateRequest } from "#lib/pki/csr.ts";
import { Authority } from "../authority/authority.ts";
import { selfSignedCa } from "./self-signed.ts";
import { type CaFiles, sharesRoot, signingBundle } from "./signing-bundle.ts";

const DAY = 86_400_000;
/** A little ahead, because openssl dates what the tests make with it. */
const NOW = Date.now() + 300_000;

describe("signingBundle()", () => {
  const folder = mkdtempSync(join(tmpdir(), "bundle-"));
  after(() => rmSync(folder, { recursive: true }));
  let own: CaFiles;
  /** A root and an intermediate as an operator makes them with openssl. */
  let plugged: CaFiles;

  before(async () => {
    own = await selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: DAY, keyKind: "P-256", now: NOW });
    const file = (name: string) => join(folder, name);
    const openssl = (...args: string[]) => execFileSync("openssl", args, { stdio: "pipe" });
    const ca = "basicConstraints=critical,CA:true";
    openssl(
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      "/O=Root",
      "-days",
      "30",
      "-addext",
      ca,
      "-keyout",
      file("root-key"),
      "-out",
      file("root"),
    );
    openssl(
      "req",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      "/O=Intermediate",
      "-keyout",
      file("ca-key"),
      "-out",
      file("csr"),
    );
    writeFileSync(file("extensions"), ca);
    openssl(
      "x509",
      "-req",
      "-in",
      file("csr"),
      "-CA",
      file("root"),
      "-CAkey",
      file("root-key"),
      "-CAcreateserial",
      "-days",
      "20",
      "-extfile",
      file("extensions"),
      "-out",
      file("ca"),
    );
    const text = (name: string) => readFileSync(file(name), "utf8");
    plugged = {
      rootPem: text("root"),
      certificatePem: text("ca"),
      keyPem: text("ca-key"),
      chainPem: text("ca") + text("root"),
    };
  });

  function refuses(files: CaFiles, message: RegExp, now = NOW): void {
    assert.throws(() => signingBundle(files, now), { code: "CA_FILES_INVALID", message });
  }

  test("takes a self-signed root without a chain", () => {
    assert.deepEqual(signingBundle(own, NOW).chain, []);
  });

  test("takes an intermediate of openssl and keeps the chain as it was given", () => {
    const bundle = signingBundle(plugged, NOW);
    assert.equal(bundle.chain.length, 2);
    assert.equal(bundle.issuer.certificate.subject, "O=Intermediate");
  });

  test("signs what openssl verifies through the chain, leaf first and roots last", async () => {
    const authority = new Authority(signingBundle(plugged, NOW), { defaultTtlMs: DAY, maxTtlMs: DAY, now: Date.now });
    const pair = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const csrPem = certificateRequest({ identity: "spiffe://a/ns/b/sa/c", ...pair });
    const answer = await authority.sign({ csrPem, identity: "spiffe://a/ns/b/sa/c", ttlSeconds: 0 });
    const [leaf = "", intermediate = ""] = answer;
    assert.deepEqual(answer.slice(1), [plugged.certificatePem, plugged.rootPem, plugged.rootPem]);
    writeFileSync(join(folder, "signed"), leaf);
    writeFileSync(join(folder, "untrusted"), intermediate);
    const args = [
      "verify",
      "-CAfile",
      join(folder, "root"),
      "-untrusted",
      join(folder, "untrusted"),
      join(folder, "signed"),
    ];
    assert.match(execFileSync("openssl", args, { encoding: "utf8" }), /signed: OK/);
  });

  test("refuses a key that does not belong to the certificate", () => {
    refuses({ ...plugged, keyPem: own.keyPem }, /ca-key\.pem does not belong to the certificate in ca-cert\.pem/);
  });

  test("refuses an intermediate that peers could not find", () => {
    refuses({ ...plugged, chainPem: plugged.rootPem }, /cert-chain\.pem lacks the certificate of "O=Intermediate"/);
  });

  test("refuses a certificate that leads to no root", () => {
    refuses({ ...plugged, rootPem: own.rootPem, chainPem: plugged.certificatePem }, /does not lead to a root/);
  });

  test("refuses a certificate that is no CA", async () => {
    const leaf = join(folder, "leaf");
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/O=Leaf",
        "-addext",
        "basicConstraints=CA:false",
        "-keyout",
        `${leaf}-key`,
        "-out",
        leaf,
      ],
      { stdio: "pipe" },
    );
    const pem = readFileSync(leaf, "utf8");
    const files = { rootPem: pem, certificatePem: pem, chainPem: "", keyPem: readFileSync(`${leaf}-key`, "utf8") };
    refuses(files, /no CA certificate/);
  });

  test("refuses what has ended and what has not begun", () => {
    refuses(own, /not now/, NOW + 2 * DAY);
    refuses(plugged, /"O=Intermediate" is valid from/, NOW + 25 * DAY);
    refuses(own, /not now/, NOW - DAY);
  });

  test("refuses files that hold something else", () => {
    refuses({ ...own, keyPem: "garbage" }, /ca-key\.pem cannot be used/);
    refuses({ ...own, rootPem: "" }, /root-cert\.pem holds no certificate/);
    refuses({ ...own, certificatePem: own.keyPem }, /ca-cert\.pem holds no certificate/);
    const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    refuses({ ...own, certificatePem: broken }, /ca-cert\.pem cannot be parsed/);
    refuses({ ...plugged, chainPem: broken }, /cert-chain\.pem cannot be parsed/);
  });

  test("sharesRoot() sees a root that both trust", () => {
    const before = signingBundle(own, NOW);
    const both = signingBundle({ ...plugged, rootPem: plugged.rootPem + own.rootPem }, NOW);
    assert.equal(sharesRoot(before, both), true);
    assert.equal(sharesRoot(before, signingBundle(plugged, NOW)), false);
  });
});
