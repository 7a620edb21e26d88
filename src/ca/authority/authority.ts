import type { KeyObject } from "node:crypto";
import { withoutTrailing } from "@mizzen/go-text/trim";
import { requestedPublicKey } from "#lib/pki/certificate-request.ts";
import { issueLeaf } from "#lib/pki/issue.ts";
import type { CertificateSigner, SignRequest } from "#model/ports.ts";
import { lifetime } from "../keys/lifetime.ts";
import type { SigningBundle } from "../keys/signing-bundle.ts";

export interface AuthorityOptions {
  /** When a request names no lifetime. */
  readonly defaultTtlMs: number;
  /** Longer wishes are cut to this. */
  readonly maxTtlMs: number;
  readonly now: () => number;
  /** Roots that workloads trust beside ours; they prove nothing to the control plane. */
  readonly furtherRoots?: FurtherRoots;
}

/** Roots of others, which may change at any time. */
export interface FurtherRoots {
  /** PEM, one certificate each. */
  current(): readonly string[];
  /** Called after each change; returns the way to stop. */
  subscribe(listener: () => void): () => void;
}

export interface LeafRequest {
  readonly publicKey: KeyObject;
  readonly subjectAltNames: readonly string[];
  /** 0 means the default. */
  readonly ttlMs: number;
}

/** The mesh's certificate authority: what it signs with can be replaced while it runs. */
export class Authority implements CertificateSigner {
  readonly #options: AuthorityOptions;
  readonly #listeners = new Set<() => void>();
  #bundle: SigningBundle;

  constructor(bundle: SigningBundle, options: AuthorityOptions) {
    this.#bundle = bundle;
    this.#options = options;
  }

  /** What signs now. */
  get bundle(): SigningBundle {
    return this.#bundle;
  }

  /** Signs with other files from now on. */
  replace(bundle: SigningBundle): void {
    this.#bundle = bundle;
    for (const listener of this.#listeners) listener();
  }

  /** Called after each replacement; returns the way to stop. */
  onReplaced(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Called after each change of what workloads trust; returns the way to stop. */
  onTrustChanged(listener: () => void): () => void {
    let known = this.trustBundle();
    const look = () => {
      const bundle = this.trustBundle();
      if (bundle === known) return;
      known = bundle;
      listener();
    };
    const stops = [this.onReplaced(look), this.#options.furtherRoots?.subscribe(look)];
    return () => {
      for (const stop of stops) stop?.();
    };
  }

  trustBundle(): string {
    const { rootPem } = this.#bundle;
    const further = (this.#options.furtherRoots?.current() ?? []).filter((root) => !rootPem.includes(root.trim()));
    return further.length === 0 ? rootPem : [`${withoutTrailing(rootPem, "\n")}\n`, ...further].join("");
  }

  /** As Istio answers: the leaf, then each certificate of the chain, and all roots in the last element. */
  async sign({ csrPem, identity, ttlSeconds }: SignRequest): Promise<readonly string[]> {
    const publicKey = await requestedPublicKey(csrPem);
    const roots = this.trustBundle();
    const chain = await this.issue({ publicKey, subjectAltNames: [identity], ttlMs: ttlSeconds * 1000 });
    return [...chain, roots];
  }

  /** The leaf and its chain without the root. */
  async issue({ publicKey, subjectAltNames, ttlMs }: LeafRequest): Promise<readonly string[]> {
    const { issuer, chain } = this.#bundle;
    const { defaultTtlMs: defaultMs, maxTtlMs: maxMs, now } = this.#options;
    const issuerEnd = issuer.certificate.validToDate;
    const validity = lifetime({ wantedMs: ttlMs, defaultMs, maxMs, issuerEnd, now: now() });
    return [await issueLeaf({ issuer, publicKey, subjectAltNames, ...validity }), ...chain];
  }
}
