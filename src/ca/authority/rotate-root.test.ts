import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { createLogger, SILENT } from "#lib/log/log.ts";
import type { Authority } from "./authority.ts";
import { openAuthority } from "./open-authority.ts";
import { checkRoot, type RotateRootInput, rotateRoot } from "./rotate-root.ts";

const DAY = 86_400_000;
const START = Math.floor(Date.now() / 1000) * 1000;

describe("checkRoot()", () => {
  let parent: string;
  let folder: string;
  let now: number;
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), "rotate-root-"));
    folder = join(parent, "cacerts");
    now = START;
  });
  afterEach(() => rmSync(parent, { recursive: true }));

  const settings = () => ({
    folder,
    trustDomain: "cluster.local",
    rootLifetimeMs: 100 * DAY,
    rootKey: "P-256" as const,
    defaultTtlMs: DAY,
    maxTtlMs: 5 * DAY,
    gracePercent: 20,
    checkIntervalMs: 3_600_000,
    now: () => now,
    log: SILENT,
  });
  const open = (): Promise<Authority> => openAuthority(settings());
  const input = (authority: Authority): RotateRootInput => ({ ...settings(), authority });
  const at = (day: number) => {
    now = START + day * DAY;
  };
  const rootCount = (authority: Authority) => authority.bundle.roots.length;
  const signer = (authority: Authority) => authority.bundle.issuer.certificate.serialNumber;

  async function leaf(authority: Authority): Promise<string> {
    const publicKey = createPublicKey(generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey);
    const [pem = ""] = await authority.issue({ publicKey, subjectAltNames: ["spiffe://a/ns/b/sa/c"], ttlMs: 0 });
    return pem;
  }

  function verifies(leafPem: string, roots: string): boolean {
    writeFileSync(join(parent, "leaf.pem"), leafPem);
    writeFileSync(join(parent, "roots.pem"), roots);
    const seconds = String(Math.floor(now / 1000));
    const args = ["verify", "-x509_strict", "-attime", seconds, "-CAfile", join(parent, "roots.pem")];
    try {
      execFileSync("openssl", [...args, join(parent, "leaf.pem")], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  }

  /** A root that was announced on day 80. */
  async function announced(): Promise<Authority> {
    const authority = await open();
    at(80);
    await checkRoot(input(authority));
    return authority;
  }

  test("leaves a root alone that has time", async () => {
    const authority = await open();
    const { bundle } = authority;
    at(79);
    await checkRoot(input(authority));
    assert.equal(authority.bundle, bundle);
  });

  test("lets the next root be trusted, while the old one goes on signing", async () => {
    const authority = await open();
    const old = signer(authority);
    let told = 0;
    authority.onReplaced(() => told++);
    at(80);
    await checkRoot(input(authority));
    assert.deepEqual([signer(authority), rootCount(authority), told], [old, 2, 1]);
    assert.equal(readFileSync(join(folder, "root-cert.pem"), "utf8"), authority.trustBundle());
    await checkRoot(input(authority));
    assert.deepEqual([rootCount(authority), told], [2, 1], "an announcement is made once");
  });

  test("two control planes on one folder make one next root, and both sign with it", async () => {
    const planes = [await open(), await open()];
    const look = () => Promise.all(planes.map((authority) => checkRoot(input(authority))));
    const [old] = planes.map(signer);
    at(80);
    await look();
    assert.deepEqual(planes.map(rootCount), [2, 2]);
    at(85);
    await look();
    const [one, other] = planes.map(signer);
    assert.equal(one, other);
    assert.notEqual(one, old);
    assert.deepEqual(planes.map(rootCount), [2, 2]);
  });

  test("a control plane that did not look in time does not repeat what another one did", async () => {
    const [busy, late] = [await open(), await open()];
    for (const day of [80, 85]) {
      at(day);
      await checkRoot(input(busy));
    }
    await checkRoot(input(late));
    assert.deepEqual([signer(late), rootCount(late)], [signer(busy), 2]);
  });

  test("signs with the next root later; what either signed is verified by whoever heard the announcement", async () => {
    const authority = await announced();
    const old = signer(authority);
    const heard = authority.trustBundle();
    at(84);
    await checkRoot(input(authority));
    assert.equal(signer(authority), old);
    const before = await leaf(authority);
    at(85);
    await checkRoot(input(authority));
    assert.notEqual(signer(authority), old);
    const after = await leaf(authority);
    at(84.5);
    assert.ok(verifies(before, heard) && verifies(before, authority.trustBundle()));
    at(85);
    assert.ok(verifies(after, heard) && verifies(after, authority.trustBundle()));
    assert.equal(verifies(after, new X509Certificate(heard).toString()), false, "the old root alone is not enough");
  });

  test("names the root that signs first, and forgets the old one when it has ended", async () => {
    const authority = await announced();
    at(85);
    await checkRoot(input(authority));
    assert.equal(authority.bundle.roots[0]?.serialNumber, signer(authority));
    assert.equal(rootCount(authority), 2);
    at(101);
    await checkRoot(input(authority));
    assert.deepEqual(
      authority.bundle.roots.map((root) => root.serialNumber),
      [signer(authority)],
    );
  });

  test("goes on after a restart in each state", async () => {
    const before = await announced();
    const restarted = await open();
    assert.equal(restarted.trustBundle(), before.trustBundle());
    at(85);
    await checkRoot(input(restarted));
    const again = await open();
    assert.equal(signer(again), signer(restarted));
    assert.deepEqual(readdirSync(folder).sort(), [
      "ca-cert.pem",
      "ca-key.pem",
      "cert-chain.pem",
      "istio-generated",
      "root-cert.pem",
    ]);
  });

  test("finishes at the next start what a crash interrupted before the key had its name", async () => {
    await announced();
    writeFileSync(join(folder, "ca-cert.pem"), readFileSync(join(folder, "next-ca-cert.pem")));
    const next = new X509Certificate(readFileSync(join(folder, "next-ca-cert.pem")));
    assert.equal(signer(await open()), next.serialNumber);
  });

  test("finishes at the next start what a crash interrupted after the key had its name", async () => {
    await announced();
    writeFileSync(join(folder, "ca-cert.pem"), readFileSync(join(folder, "next-ca-cert.pem")));
    renameSync(join(folder, "next-ca-key.pem"), join(folder, "ca-key.pem"));
    await open();
    assert.ok(!readdirSync(folder).includes("next-ca-cert.pem"));
  });

  test("announces anew when a crash left a next root that nobody was told of", async () => {
    const authority = await open();
    const alone = authority.trustBundle();
    at(80);
    await checkRoot(input(authority));
    writeFileSync(join(folder, "root-cert.pem"), alone);
    at(86);
    const restarted = await open();
    await checkRoot(input(restarted));
    assert.equal(rootCount(restarted), 2);
    assert.equal(signer(restarted), signer(authority));
  });

  test("keeps both keys to their owner, encrypted if there is a passphrase", async () => {
    const passphraseFile = join(parent, "passphrase");
    writeFileSync(passphraseFile, "open sesame\n");
    const authority = await openAuthority({ ...settings(), passphraseFile });
    at(80);
    await checkRoot({ ...input(authority), passphraseFile });
    for (const name of ["ca-key.pem", "next-ca-key.pem"]) {
      assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
      assert.match(readFileSync(join(folder, name), "utf8"), /^-----BEGIN ENCRYPTED PRIVATE KEY-----/);
    }
    at(85);
    await checkRoot({ ...input(authority), passphraseFile });
    assert.ok(verifies(await leaf(authority), authority.trustBundle()));
    assert.equal(statSync(join(folder, "ca-key.pem")).mode & 0o777, 0o600);
  });

  test("does not touch files of an operator", async () => {
    const authority = await open();
    rmSync(join(folder, "istio-generated"));
    at(95);
    await checkRoot(input(authority));
    assert.equal(rootCount(authority), 1);
  });

  test("says why a step failed and tries it again", async () => {
    const authority = await open();
    at(80);
    const lines: string[] = [];
    const stopping = new AbortController();
    const log = createLogger({ write: (line) => lines.push(line) });
    // A passphrase that comes late.
    const passphraseFile = join(parent, "passphrase");
    const late = { ...input(authority), passphraseFile, checkIntervalMs: 5, log };
    authority.onReplaced(() => stopping.abort());
    const running = rotateRoot(late, stopping.signal);
    while (lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.match(lines[0] ?? "", /error\tcannot rotate the root.*CA_KEY_PASSPHRASE_FILE/);
    writeFileSync(passphraseFile, "late");
    await running;
  });

  test("is off without an interval", async () => {
    const authority = await open();
    at(95);
    await rotateRoot({ ...input(authority), checkIntervalMs: 0 }, new AbortController().signal);
    assert.equal(rootCount(authority), 1);
  });
});

describe("a passphrase file", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "passphrase-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const openWith = (passphraseFile: string | undefined) =>
    openAuthority({
      folder: join(folder, "ca"),
      passphraseFile,
      trustDomain: "a",
      rootLifetimeMs: DAY,
      rootKey: "P-256",
      defaultTtlMs: DAY,
      maxTtlMs: DAY,
      now: Date.now,
      log: SILENT,
    });
  const file = (text: string) => {
    writeFileSync(join(folder, "p"), text);
    return join(folder, "p");
  };

  test("that is missing or empty is an error, and no root is made", async () => {
    await assert.rejects(openWith(join(folder, "none")), { code: "CA_PASSPHRASE_UNREADABLE" });
    await assert.rejects(openWith(file("\n")), { code: "CA_PASSPHRASE_UNREADABLE", message: /empty/ });
    assert.deepEqual(readdirSync(folder), ["p"]);
  });

  test("with another passphrase, or none, does not open the key", async () => {
    await openWith(file("right"));
    await assert.rejects(openWith(file("wrong")), { code: "CA_FILES_INVALID" });
    await assert.rejects(openWith(undefined), { code: "CA_FILES_INVALID" });
    await openWith(file("right"));
  });

  test("does not matter to a key that is not encrypted", async () => {
    await openWith(undefined);
    await openWith(file("any"));
  });
});
