import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { emptyRevocationList } from "../../../test/support/certificates.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { type CaFiles, signingBundle } from "../keys/signing-bundle.ts";
import { Authority } from "./authority.ts";
import { followRevocations } from "./revocations.ts";

const DAY = 86_400_000;
const INTERVAL_MS = 10;

let folder: string;
let stopping: AbortController;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "crl-"));
  stopping = new AbortController();
});
afterEach(() => {
  stopping.abort();
  rmSync(folder, { recursive: true });
});

const newCa = () => selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: DAY, keyKind: "P-256", now: Date.now() });
const listOf = ({ keyPem }: CaFiles) => emptyRevocationList(keyPem);
const bundleOf = (files: CaFiles) => signingBundle(files, Date.now());
const write = (text: string) => writeFileSync(join(folder, "ca-crl.pem"), text);

function authorityOf(files: CaFiles): Authority {
  return new Authority(bundleOf(files), { defaultTtlMs: DAY, maxTtlMs: DAY, now: Date.now });
}

function follow(authority: Authority, lines?: string[]) {
  const log = lines === undefined ? SILENT : createLogger({ write: (line) => lines.push(line) });
  return followRevocations({ authority, folder, log, intervalMs: INTERVAL_MS }, stopping.signal);
}

/** Until the condition holds; the test runner's timeout ends it otherwise. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS));
}

test("followRevocations() has the list of the start at once, and that of a changed file", async () => {
  const files = await newCa();
  const first = await listOf(files);
  write(first);
  const revocations = await follow(authorityOf(files));
  assert.equal(revocations.text(), first);
  const second = first + (await listOf(files));
  const changed = new Promise<void>((resolve) => void revocations.onText(resolve));
  write(second);
  await changed;
  assert.equal(revocations.text(), second);
});

test("followRevocations() tells of nothing where there is no file, and when it goes", async () => {
  const files = await newCa();
  const revocations = await follow(authorityOf(files));
  assert.equal(revocations.text(), "");
  write(await listOf(files));
  await until(() => revocations.text() !== "");
  rmSync(join(folder, "ca-crl.pem"));
  await until(() => revocations.text() === "");
});

test("followRevocations() refuses to start with a list that would end all calls", async () => {
  const files = await newCa();
  for (const [text, problem] of [
    ["-----BEGIN X509 CRL-----\n", /ca-crl\.pem has no list that ".*" has signed/],
    ["-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", /a list in ca-crl\.pem cannot be parsed/],
    [await listOf(await newCa()), /has no list that/],
  ] as const) {
    write(text);
    await assert.rejects(follow(authorityOf(files)), (thrown) => problem.test(errorText(thrown)));
  }
});

test("followRevocations() keeps the former list, and takes the new one once its CA is there", async () => {
  const [files, next] = [await newCa(), await newCa()];
  const first = await listOf(files);
  write(first);
  const authority = authorityOf(files);
  const lines: string[] = [];
  const revocations = await follow(authority, lines);
  const second = await listOf(next);
  write(second);
  await until(() => lines.some((line) => line.includes("changed ca-crl.pem is not used")));
  assert.equal(revocations.text(), first);
  authority.replace(bundleOf(next));
  await until(() => revocations.text() === second);
});
