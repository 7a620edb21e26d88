/** Roots are replaced while requests go on, each of them a handshake between two real Envoys. */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pemCertificates } from "#lib/pki/pem.ts";
import { WHERE_ENVOY } from "../../support/agent-process.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { ProxyPair } from "./proxy-pair.ts";

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

test("a self-signed root makes way for the next ones without a failed request", WHERE_ENVOY, async () => {
  await using pair = await ProxyPair.start({
    controlPlane: {
      // A root begins two minutes in the past: of its 150 seconds the last 18 are for its successor.
      CITADEL_SELF_SIGNED_CA_CERT_TTL: "30s",
      CITADEL_SELF_SIGNED_ROOT_CERT_GRACE_PERIOD_PERCENTILE: "12",
      CITADEL_SELF_SIGNED_ROOT_CERT_CHECK_INTERVAL: "200ms",
      MAX_WORKLOAD_CERT_TTL: "6s",
    },
    agents: { SECRET_TTL: "6s" },
  });
  const [first = ""] = rootsIn(pair.caFolder);
  await using calls = new SteadyCalls(pair);
  await eventually(
    `the first root is gone\n${pair.output}`,
    async () => {
      const seen = await pair.certificates();
      return seen.every(({ roots }) => roots.length > 0 && !roots.includes(first));
    },
    50_000,
  );
  assert.equal(await pair.call(), 200);
  assert.ok(calls.count > 100, String(calls.count));
  assert.deepEqual(calls.failed, []);
});
