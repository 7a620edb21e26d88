/**
 * `caCertificates` of the mesh config: roots in the config itself, and SPIFFE bundles that are fetched. What was fetched last
 * is kept while its server cannot be had.
 */
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { parseSpiffeBundle } from "#lib/pki/spiffe-bundle.ts";
import { type CaCertificate, trustAnchors } from "../keys/trust-anchors.ts";
import type { FurtherRoots } from "./authority.ts";

/** As often as istiod. */
const REFRESH_MS = 1_800_000;
/** While a bundle was never had. */
const RETRY_MS = 10_000;

export interface MeshAnchorsInput {
  /** The entries in effect; another list when they changed. */
  readonly entries: () => readonly CaCertificate[];
  /** Called after changes of the mesh config; returns the way to stop. */
  readonly onChange: (listener: () => void) => () => void;
  /** Gets the text behind a URL. */
  readonly fetch: (url: string, signal: AbortSignal) => Promise<string>;
  readonly log: Logger;
}

export class MeshAnchors implements FurtherRoots {
  readonly #input: MeshAnchorsInput;
  readonly #listeners = new Set<() => void>();
  readonly #bundles = new Map<string, readonly string[]>();
  #entries: readonly CaCertificate[] | undefined;
  #anchors: readonly string[] = [];

  constructor(input: MeshAnchorsInput) {
    this.#input = input;
  }

  current(): readonly string[] {
    if (this.#input.entries() !== this.#entries) this.#read();
    return this.#anchors;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Fetches bundles, now and again and when the config changes, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const changed = new AbortController();
      using listening = new DisposableStack();
      const seen = this.#input.entries();
      listening.defer(
        this.#input.onChange(() => {
          if (this.#input.entries() !== seen) changed.abort();
        }),
      );
      const missing = await this.#fetchAll(AbortSignal.any([signal, changed.signal]));
      if (signal.aborted) return;
      this.#read();
      for (const listener of this.#listeners) listener();
      await sleep(missing ? RETRY_MS : REFRESH_MS, AbortSignal.any([signal, changed.signal]));
    }
  }

  /** True when a bundle was never had. */
  async #fetchAll(signal: AbortSignal): Promise<boolean> {
    const urls = this.#input.entries().flatMap(({ spiffeBundleUrl }) => spiffeBundleUrl ?? []);
    for (const url of this.#bundles.keys()) if (!urls.includes(url)) this.#bundles.delete(url);
    await Promise.all(
      urls.map(async (url) => {
        try {
          this.#bundles.set(url, parseSpiffeBundle(await this.#input.fetch(withScheme(url), signal)));
        } catch (error) {
          if (signal.aborted) return;
          const kept = this.#bundles.get(url)?.length ?? 0;
          this.#input.log.error("cannot get a SPIFFE bundle", { url, kept, reason: errorText(error) });
        }
      }),
    );
    return urls.some((url) => !this.#bundles.has(url));
  }

  #read(): void {
    const isNew = this.#entries !== this.#input.entries();
    this.#entries = this.#input.entries();
    const { anchors, problems } = trustAnchors(this.#entries, (url) => this.#bundles.get(url));
    this.#anchors = anchors;
    // Said once for each config.
    if (!isNew) return;
    for (const reason of problems) this.#input.log.warn("a trust anchor of the mesh config is not used", { reason });
  }
}

/** Bundles come over TLS, whatever the config says. */
function withScheme(url: string): string {
  return url.startsWith("https://") ? url : `https://${url}`;
}
