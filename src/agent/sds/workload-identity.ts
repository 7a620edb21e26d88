/**
 * The certificate of this workload: asked for at start, kept in memory, and replaced long before it expires. While the
 * CA cannot be had the one at hand is kept, and the CA is asked again with growing pauses.
 */

import { formatDuration } from "@mizzen/go-text/duration";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import type { AgentMetrics } from "../metrics.ts";
import { type RotationOptions, rotationDelayMs, type WorkloadCertificate, workloadCertificate } from "./certificate.ts";
import { generateKey, type KeyOptions } from "./key.ts";
import type { Sign } from "./sign.ts";

export interface WorkloadIdentityOptions {
  /** SPIFFE id that the request names; the CA takes it from the token all the same. */
  readonly identity: string;
  readonly key: KeyOptions;
  readonly ttlSeconds: number;
  readonly rotation: RotationOptions;
  /** The first request waits a random time below this: a CA is not called by all workloads of a rollout at once. */
  readonly initialBackoffMs?: number;
  readonly sign: Sign;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
  readonly now?: () => number;
  readonly random?: () => number;
  readonly backoff?: Backoff;
  /** A certificate is kept at least this long, whatever its lifetime, and so does a CA rest that failed: it is not flooded. */
  readonly shortestMs?: number;
}

/** Which secrets are new. */
export interface CertificateChange {
  readonly certificate: WorkloadCertificate;
  readonly rootsChanged: boolean;
}

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 60_000;
const SHORTEST_MS = 1_000;
/** The clock is looked at this often: timers stand still while a machine sleeps, lifetimes do not. */
const LOOK_EVERY_MS = 60_000;

export class WorkloadIdentity {
  readonly #options: WorkloadIdentityOptions;
  readonly #listeners = new Set<(change: CertificateChange) => void>();
  #current: WorkloadCertificate | undefined;
  #renewal = new AbortController();
  #hurry = new AbortController();

  constructor(options: WorkloadIdentityOptions) {
    this.#options = options;
    options.metrics.certificateExpiry = () => this.#current && (this.#current.expiresAt - this.#now()) / 1000;
  }

  /** Undefined until the CA answered for the first time. */
  get current(): WorkloadCertificate | undefined {
    return this.#current;
  }

  /** Calls back with each new certificate; returns the way to stop. */
  subscribe(onChange: (change: CertificateChange) => void): () => void {
    this.#listeners.add(onChange);
    return () => void this.#listeners.delete(onChange);
  }

  /** Asks for a new certificate now instead of when the one at hand is old. */
  renew(): void {
    this.#renewal.abort();
  }

  /** Somebody asks: if there was no certificate yet, what is left of a pause after a failure is not waited for. */
  hurry(): void {
    if (this.#current === undefined) this.#hurry.abort();
  }

  /** Keeps the certificate fresh until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { rotation, random = Math.random, shortestMs = SHORTEST_MS, initialBackoffMs = 0, log } = this.#options;
    if (initialBackoffMs > 0) {
      const pause = random() * initialBackoffMs;
      log.debug("initial backoff", { wait: formatDuration(Math.round(pause)) });
      await sleep(pause, signal);
    }
    const stop = () => this.#renewal.abort();
    signal.addEventListener("abort", stop);
    while (!signal.aborted) {
      this.#renewal = new AbortController();
      const certificate = await this.#obtain(signal);
      if (certificate === undefined) break;
      this.#replace(certificate);
      const due = rotationDelayMs(certificate, rotation, { now: this.#now(), random: random() });
      const delay = Math.max(due, shortestMs);
      log.debug("scheduled certificate for rotation", { in: formatDuration(Math.round(delay)) });
      await this.#wait(delay, signal);
    }
    signal.removeEventListener("abort", stop);
  }

  /** Until the time has passed by the clock, which may jump ahead, or by timers, which a clock that is set back does not put off. */
  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    const renewal = this.#renewal.signal;
    const due = this.#now() + ms;
    let left = ms;
    while (!renewal.aborted && !signal.aborted) {
      const pause = Math.min(left, due - this.#now(), LOOK_EVERY_MS);
      if (pause <= 0) return;
      await sleep(pause, renewal);
      left -= pause;
    }
  }

  async #obtain(signal: AbortSignal): Promise<WorkloadCertificate | undefined> {
    const { log, shortestMs = SHORTEST_MS } = this.#options;
    const { backoff = new Backoff({ initialMs: FIRST_RETRY_MS, maxMs: LONGEST_RETRY_MS }) } = this.#options;
    backoff.reset();
    while (!signal.aborted) {
      this.#hurry = new AbortController();
      try {
        return await this.#ask(signal);
      } catch (thrown) {
        if (signal.aborted) break;
        const pause = backoff.next();
        const reason = thrown instanceof MeshError ? thrown.message : errorText(thrown);
        log.warn(`${reason}; next attempt in ${formatDuration(Math.round(pause))}`);
        const rest = Math.min(pause, shortestMs);
        await sleep(rest, signal);
        await sleep(pause - rest, AbortSignal.any([signal, this.#hurry.signal]));
        if (this.#hurry.signal.aborted) backoff.reset();
      }
    }
    return undefined;
  }

  async #ask(signal: AbortSignal): Promise<WorkloadCertificate> {
    const { identity, key: keyOptions, ttlSeconds, sign, metrics, log } = this.#options;
    const startedAt = performance.now();
    log.debug("asking for a certificate", { identity, ttl: formatDuration(1000 * ttlSeconds) });
    const key = await generateKey(keyOptions);
    const csr = certificateRequest({ identity, ...key });
    metrics.signRequests.add();
    const askedAt = performance.now();
    try {
      const signed = await sign({ csr, ttlSeconds }, signal);
      const certificate = workloadCertificate(signed, { key, identity, now: this.#now() });
      const ttl = formatDuration(certificate.expiresAt - certificate.createdAt);
      const latency = formatDuration(Math.round(performance.now() - startedAt));
      log.info("generated new workload certificate", { resourceName: "default", latency, ttl });
      return certificate;
    } catch (thrown) {
      metrics.failedSignRequests.add();
      throw thrown;
    } finally {
      metrics.signMilliseconds.add(performance.now() - askedAt);
    }
  }

  #replace(certificate: WorkloadCertificate): void {
    const rootsChanged = this.#current?.roots !== certificate.roots;
    if (rootsChanged && this.#current !== undefined)
      this.#options.log.info("Root cert has changed, start rotating root cert");
    this.#current = certificate;
    for (const listener of this.#listeners) listener({ certificate, rootsChanged });
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}
