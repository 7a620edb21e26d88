/** Roots are replaced while requests go on, each of them a handshake between two real Envoys. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CA_FILE_NAMES } from "#ca/keys/ca-folder.ts";
import { selfSignedCa } from "#ca/keys/self-signed.ts";
import type { CaFiles } from "#ca/keys/signing-bundle.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import { WHERE_ENVOY } from "../../support/agent-process.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { ProxyPair } from "./proxy-pair.ts";

/** Roots live as long as they have to, so that a busy machine can follow. */
const OPTIONS = { ...WHERE_ENVOY, timeout: 180_000 };
/** Of certificates: agents renew them after half of it. */
const SHORT_LIFE = "10s";

/** Requests one after the other until it is disposed of; at the end none may have failed. */
class SteadyCalls implements AsyncDisposable {
  readonly #statuses: number[] = [];
  readonly #done: Promise<void>;
  #isOver = false;

  constructor(pair: ProxyPair) {
    this.#done = this.#run(pair);
  }

  get failed(): readonly number[] {
    return this.#statuses.filter((status) => status !== 200);
  }

  get count(): number {
    return this.#statuses.length;
  }

  async #run(pair: ProxyPair): Promise<void> {
    while (!this.#isOver) {
      this.#statuses.push(await pair.call());
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }
}

/** As Envoy prints it. */
const serialOf = (pem: string) => new X509Certificate(pem).serialNumber.toLowerCase().replace(/^0+/, "");

function rootsIn(folder: string): readonly string[] {
  return pemCertificates(readFileSync(join(folder, "root-cert.pem"), "utf8")).map(serialOf);
}

test("a self-signed root makes way for the next ones without a failed request", OPTIONS, async () => {
  await using pair = await ProxyPair.start({
    controlPlane: {
      // A root begins two minutes in the past: of its 165 seconds the last 30 are for its successor.
      CITADEL_SELF_SIGNED_CA_CERT_TTL: "45s",
      CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: "18",
      CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: "200ms",
      MAX_WORKLOAD_CERT_TTL: SHORT_LIFE,
    },
    agents: { SECRET_TTL: SHORT_LIFE },
  });
  const [first = ""] = rootsIn(pair.caFolder);
  await using calls = new SteadyCalls(pair);
  await eventually(
    `the first root is gone\n${pair.output}`,
    async () => {
      const seen = await pair.certificates();
      return seen.every(({ roots }) => roots.length > 0 && !roots.includes(first));
    },
    90_000,
  );
  assert.equal(await pair.call(), 200);
  assert.ok(calls.count > 100, String(calls.count));
  assert.deepEqual(calls.failed, []);
});

/** Files of an operator, each replaced as a whole. */
function plugIn(folder: string, { passphrase: _, names: __, ...files }: CaFiles): void {
  for (const [field, text] of Object.entries(files)) {
    const file = join(folder, CA_FILE_NAMES[field as keyof typeof CA_FILE_NAMES]);
    writeFileSync(`${file}.new`, text, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}

const operatorsCa = () =>
  selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: 86_400_000, keyKind: "P-256", now: Date.now() });

test("an operator's CA makes way for another one without a failed request", OPTIONS, async () => {
  const [before, after] = [await operatorsCa(), await operatorsCa()];
  const [oldRoot, newRoot] = [serialOf(before.rootPem), serialOf(after.rootPem)];
  await using pair = await ProxyPair.start({
    controlPlane: { MAX_WORKLOAD_CERT_TTL: SHORT_LIFE },
    agents: { SECRET_TTL: SHORT_LIFE },
    prepareCa: (folder) => plugIn(folder, before),
  });
  await using calls = new SteadyCalls(pair);
  const trusted = (...wanted: readonly string[]) =>
    eventually(
      `roots ${wanted}`,
      async () => {
        const seen = await pair.certificates();
        return seen.every(
          ({ roots }) => roots.length === wanted.length && wanted.every((root) => roots.includes(root)),
        );
      },
      30_000,
    );
  const reloads = (count: number) =>
    eventually(`reload ${count}`, () => pair.output.split("CA files were reloaded").length > count);
  // Both are trusted, the old one signs; then the new one signs; then it alone is trusted.
  const both = before.rootPem + after.rootPem;
  plugIn(pair.caFolder, { ...before, rootPem: both });
  await trusted(oldRoot, newRoot);
  plugIn(pair.caFolder, { ...after, rootPem: both });
  await reloads(2);
  const former = (await pair.certificates()).map(({ leaf }) => leaf);
  await eventually("certificates of the new root", async () =>
    (await pair.certificates()).every(({ leaf }, i) => leaf !== former[i]),
  );
  plugIn(pair.caFolder, after);
  await trusted(newRoot);
  assert.equal(await pair.call(), 200);
  assert.deepEqual(calls.failed, []);
});

test("a further root reaches proxies at once, long before their certificates end", OPTIONS, async () => {
  const [own, further] = [await operatorsCa(), await operatorsCa()];
  await using pair = await ProxyPair.start({
    controlPlane: { ISTIO_MULTIROOT_MESH: "true" },
    agents: { PROXY_CONFIG_XDS_AGENT: "true" },
    prepareCa: (folder) => plugIn(folder, own),
  });
  await using calls = new SteadyCalls(pair);
  plugIn(pair.caFolder, { ...own, rootPem: own.rootPem + further.rootPem });
  await eventually("both roots", async () => {
    const seen = await pair.certificates();
    return seen.every(
      ({ roots }) => roots.includes(serialOf(own.rootPem)) && roots.includes(serialOf(further.rootPem)),
    );
  });
  assert.deepEqual(calls.failed, []);
});
