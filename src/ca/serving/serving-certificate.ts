import { createPublicKey, X509Certificate } from "node:crypto";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { ServerIdentity, ServerIdentitySource } from "#lib/net/server-identity.ts";
import { formatSigningKey, generateSigningKey } from "#lib/pki/signing-key.ts";
import type { Authority } from "../authority/authority.ts";
import type { SigningBundle } from "../keys/signing-bundle.ts";

/** As long as the authority lets it be. */
const LIFETIME_MS = Number.POSITIVE_INFINITY;
/** Keeps a CA that ends soon from being asked faster and faster. */
const SHORTEST_PAUSE_MS = 1_000;
/** After an attempt that failed, unless the CA changes before. */
const RETRY_PAUSE_MS = 60_000;

export interface ServingCertificateInput {
  readonly authority: Authority;
  /** DNS names and IP addresses under which clients reach the control plane. */
  readonly names: readonly string[];
  readonly log: Logger;
  readonly now: () => number;
}

interface Issued {
  readonly identity: ServerIdentity;
  readonly signedWith: SigningBundle;
  /** When half of the life that was left to it is over. */
  readonly renewAt: number;
}

/** The control plane's own certificate, signed by its CA; renewed after half its life and when the CA changes. */
export class ServingCertificate implements ServerIdentitySource {
  readonly #input: ServingCertificateInput;
  readonly #listeners = new Set<(identity: ServerIdentity) => void>();
  #issued: Issued;
  /** What the last attempt was made with. */
  #tried: SigningBundle;
  #nextAttempt: number;

  private constructor(input: ServingCertificateInput, issued: Issued) {
    this.#input = input;
    this.#issued = issued;
    this.#tried = issued.signedWith;
    this.#nextAttempt = issued.renewAt;
  }

  static async issue(input: ServingCertificateInput): Promise<ServingCertificate> {
    return new ServingCertificate(input, await issueServing(input));
  }

  current(): ServerIdentity {
    return this.#issued.identity;
  }

  subscribe(listener: (identity: ServerIdentity) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Renews until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { authority, now } = this.#input;
    while (!signal.aborted) {
      const replaced = new AbortController();
      using listening = new DisposableStack();
      listening.defer(authority.onReplaced(() => replaced.abort()));
      // A CA that was replaced while we renewed is seen here, not by the listener.
      if (authority.bundle === this.#tried && now() < this.#nextAttempt) {
        await sleep(this.#nextAttempt - now(), AbortSignal.any([signal, replaced.signal]));
        continue;
      }
      await this.#renew();
    }
  }

  async #renew(): Promise<void> {
    this.#tried = this.#input.authority.bundle;
    try {
      this.#issued = await issueServing(this.#input);
      this.#nextAttempt = this.#issued.renewAt;
      for (const listener of this.#listeners) listener(this.#issued.identity);
    } catch (error) {
      this.#nextAttempt = this.#input.now() + RETRY_PAUSE_MS;
      const reason = errorText(error);
      this.#input.log.error("cannot renew the control plane's certificate, the former one stays", { reason });
    }
  }
}

async function issueServing({ authority, names, log, now }: ServingCertificateInput): Promise<Issued> {
  const key = await generateSigningKey("P-256");
  const signedWith = authority.bundle;
  const publicKey = createPublicKey(key.privateKey);
  const certificates = await authority.issue({ publicKey, subjectAltNames: names, ttlMs: LIFETIME_MS });
  const { serialNumber, validToDate } = new X509Certificate(certificates[0] ?? "");
  const expires = validToDate.toISOString();
  log.info("issued the control plane's own certificate", { names: names.join(","), serial: serialNumber, expires });
  return {
    identity: {
      certificates: certificates.join(""),
      key: formatSigningKey(key),
      clientRoots: signedWith.rootPem,
    },
    signedWith,
    renewAt: now() + Math.max((validToDate.getTime() - now()) / 2, SHORTEST_PAUSE_MS),
  };
}
