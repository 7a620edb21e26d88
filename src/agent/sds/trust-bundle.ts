import { pemCertificates } from "#lib/pki/pem.ts";

/** Roots that the mesh's configuration adds to those of the CA (`caCertificates` of mesh config, sent as ProxyConfig). */
export class TrustBundle {
  readonly #listeners = new Set<() => void>();
  #added: readonly string[] = [];

  /** Replaces the added roots by those in some PEM texts. */
  update(texts: readonly string[]): void {
    const added = texts.flatMap(pemCertificates).map((pem) => pem.trim());
    if (added.join() === this.#added.join()) return;
    this.#added = added;
    for (const listener of this.#listeners) listener();
  }

  /** All roots, each of them once and in an order of their own, so that equal sets are equal texts. */
  merge(roots: string): string {
    const own = pemCertificates(roots).map((pem) => pem.trim());
    return [...new Set([...this.#added, ...own])].sort().join("\n");
  }

  /** Calls back after each change; returns the way to stop. */
  subscribe(onChange: () => void): () => void {
    this.#listeners.add(onChange);
    return () => void this.#listeners.delete(onChange);
  }
}
