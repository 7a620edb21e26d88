import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { type CaFiles, signingBundle } from "../keys/signing-bundle.ts";
import { Authority } from "./authority.ts";
import { authorityStatus, dueWarning, ExpiryWarner } from "./expiry.ts";

const DAY = 86_400_000;
const NOW = Math.floor(Date.now() / 1000) * 1000;

function ca(days: number): Promise<CaFiles> {
  return selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: days * DAY, keyKind: "P-256", now: NOW });
}

function authorityOf(files: CaFiles): Authority {
  return new Authority(signingBundle(files, NOW), { defaultTtlMs: DAY, maxTtlMs: DAY, now: () => NOW });
}

test("dueWarning() is due at 30, 7 and 1 days and at the end", () => {
  const due = [31, 30, 8, 7, 2, 1, 0.1, 0, -5].map((days) => dueWarning(new Date(NOW + days * DAY), NOW));
  assert.deepEqual(due, [undefined, 30, 30, 7, 7, 1, 1, 0, 0]);
});

test("authorityStatus() marks what ends soon", async () => {
  const [short, long] = await Promise.all([ca(5), ca(100)]);
  const { signing, roots } = authorityStatus(authorityOf({ ...short, rootPem: short.rootPem + long.rootPem }), NOW);
  assert.deepEqual(
    signing.map(({ subject, expires, daysLeft, warning }) => ({ subject, expires, daysLeft, warning })),
    [
      {
        subject: "O=cluster.local",
        expires: new Date(NOW + 5 * DAY).toISOString(),
        daysLeft: 5,
        warning: "ends in 7 days or less",
      },
    ],
  );
  assert.deepEqual(
    roots.map(({ daysLeft, warning }) => [daysLeft, warning]),
    [
      [5, "ends in 7 days or less"],
      [100, undefined],
    ],
  );
});

describe("ExpiryWarner", () => {
  function warner(authority: Authority) {
    const lines: string[] = [];
    let now = NOW;
    const input = { authority, log: createLogger({ write: (line) => lines.push(line) }), now: () => now };
    const subject = new ExpiryWarner(input);
    const said = () => lines.splice(0).map((line) => line.trim().split("\t").slice(1, -1).join(" "));
    const at = (day: number) => {
      now = NOW + day * DAY;
      subject.check();
      return said();
    };
    return { at, said, run: (signal: AbortSignal) => subject.run(signal) };
  }

  test("warns once for each threshold", async () => {
    const { at } = warner(authorityOf(await ca(100)));
    assert.deepEqual(at(69), []);
    assert.deepEqual(at(70), ["warn a certificate of the CA ends within 30 days"]);
    assert.deepEqual(at(71), []);
    assert.deepEqual(at(93), ["warn a certificate of the CA ends within 7 days"]);
    assert.deepEqual(at(99), ["warn a certificate of the CA ends within a day"]);
    assert.deepEqual(at(100), ["error a certificate of the CA has ended: nothing can be signed"]);
    assert.deepEqual(at(101), []);
  });

  test("is silent about roots that nothing is signed with", async () => {
    const [short, long] = await Promise.all([ca(5), ca(100)]);
    const { at } = warner(authorityOf({ ...long, rootPem: long.rootPem + short.rootPem }));
    assert.deepEqual(at(1), []);
  });

  test("looks again when the files are replaced", async () => {
    const [short, long] = await Promise.all([ca(5), ca(100)]);
    const authority = authorityOf(long);
    const { said, run } = warner(authority);
    const stopping = new AbortController();
    const running = run(stopping.signal);
    authority.replace(signingBundle(short, NOW));
    stopping.abort();
    await running;
    assert.deepEqual(said(), ["warn a certificate of the CA ends within 7 days"]);
  });
});
