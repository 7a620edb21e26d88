/**
 * One writer among several replicas, by a Lease in the API server. Who holds it writes its time there again and again; who
 * sees that time stand still for long enough, on its own clock, takes over. Clocks need not agree.
 */
import { setTimeout as wait } from "node:timers/promises";
import type { Logger } from "../log/log.ts";
import { ApiError, type KubernetesApi, type RawObject } from "./api-client.ts";
import { refusalText } from "./missing-right.ts";
import { pathOf } from "./resource-types.ts";

export interface ElectionOptions {
  readonly api: KubernetesApi;
  readonly namespace: string;
  /** Of the Lease. */
  readonly name: string;
  /** Who we are: different for each replica. */
  readonly identity: string;
  readonly log: Logger;
  readonly timing?: ElectionTiming;
}

export interface ElectionTiming {
  /** A holder that was silent for so long has lost the Lease. */
  readonly leaseMs: number;
  /** A holder that could not write for so long gives up, before others take over. */
  readonly renewLimitMs: number;
  readonly retryMs: number;
}

const TIMING: ElectionTiming = { leaseMs: 15_000, renewLimitMs: 10_000, retryMs: 2_000 };
const LEASES = { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true };

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly renewTime?: string;
  readonly acquireTime?: string;
  readonly leaseTransitions?: number;
  readonly leaseDurationSeconds?: number;
}

/** Calls `lead` whenever we are elected, with a signal that aborts when that is over. Resolves when the signal aborts. */
export async function leadWhenElected(
  options: ElectionOptions,
  lead: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const candidate = new Candidate(options);
  while (!signal.aborted) {
    if (await candidate.take()) await candidate.hold(lead, signal);
    else await pause(candidate.timing.retryMs, signal);
  }
}

class Candidate {
  readonly timing: ElectionTiming;
  readonly #options: ElectionOptions;
  /** The Lease as last seen, and when we saw it change. */
  #seen: { readonly version: string; readonly at: number } | undefined;
  /** Why the last try failed; empty: it did not. */
  #told = "";

  constructor(options: ElectionOptions) {
    this.#options = options;
    this.timing = options.timing ?? TIMING;
  }

  /** Takes the Lease if it is free, or renews ours. False when another holds it, or the server cannot be asked. */
  async take(): Promise<boolean> {
    try {
      const isTaken = await this.#try();
      this.#told = "";
      return isTaken;
    } catch (problem) {
      const isRace = problem instanceof ApiError && problem.status === 409;
      if (!isRace) this.#tell(refusalText(problem));
      return false;
    }
  }

  async #try(): Promise<boolean> {
    const lease = await this.#read();
    if (lease === undefined) return this.#write("POST", undefined, {});
    const spec = (lease.spec ?? {}) as LeaseSpec;
    return this.#isFree(lease, spec) && this.#write("PUT", lease, spec);
  }

  /** Tries follow each other quickly: why they fail is told when it is another reason than before. */
  #tell(reason: string): void {
    if (reason !== this.#told) this.#options.log.warn("the election of a leader waits", { reason });
    this.#told = reason;
  }

  async hold(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { log, name } = this.#options;
    log.info("elected as leader", { lease: name });
    const over = new AbortController();
    const leading = lead(over.signal);
    let renewed = performance.now();
    while (!signal.aborted && performance.now() - renewed < this.timing.renewLimitMs) {
      await Promise.race([pause(this.timing.retryMs, signal), leading]);
      if (!signal.aborted && (await this.take())) renewed = performance.now();
    }
    over.abort();
    await leading;
    if (signal.aborted) await this.#release();
    log.info("leads no longer", { lease: name });
  }

  /** So that the next one need not wait. */
  async #release(): Promise<void> {
    try {
      const lease = await this.#read();
      const spec = (lease?.spec ?? {}) as LeaseSpec;
      if (lease === undefined || spec.holderIdentity !== this.#options.identity) return;
      await this.#send("PUT", { ...lease, spec: { ...spec, holderIdentity: "", leaseDurationSeconds: 1 } });
    } catch {
      // It ends by itself.
    }
  }

  #isFree({ metadata }: RawObject, { holderIdentity = "" }: LeaseSpec): boolean {
    const version = metadata.resourceVersion ?? "";
    if (this.#seen?.version !== version) this.#seen = { version, at: performance.now() };
    const isOurs = holderIdentity === "" || holderIdentity === this.#options.identity;
    return isOurs || performance.now() - this.#seen.at > this.timing.leaseMs;
  }

  async #write(method: "POST" | "PUT", lease: RawObject | undefined, before: LeaseSpec): Promise<boolean> {
    const { identity, name, namespace } = this.#options;
    const now = new Date().toISOString().replace("Z", "000Z");
    const isNew = before.holderIdentity !== identity;
    const spec: LeaseSpec = {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(this.timing.leaseMs / 1000),
      renewTime: now,
      acquireTime: isNew ? now : (before.acquireTime ?? now),
      leaseTransitions: (before.leaseTransitions ?? 0) + (isNew && lease !== undefined ? 1 : 0),
    };
    await this.#send(method, { ...(lease ?? { metadata: { name, namespace } }), spec });
    return true;
  }

  async #read(): Promise<RawObject | undefined> {
    const { api, namespace, name } = this.#options;
    try {
      return await api.call({ path: pathOf(LEASES, { namespace, name }), signal: this.#limit() });
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) return undefined;
      throw problem;
    }
  }

  async #send(method: "POST" | "PUT", lease: object): Promise<void> {
    const { api, namespace, name } = this.#options;
    const path = pathOf(LEASES, method === "PUT" ? { namespace, name } : { namespace });
    const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", ...lease };
    await api.call({ method, path, body, signal: this.#limit() });
  }

  /** A server that does not answer must not keep a holder from giving up in time. */
  #limit(): AbortSignal {
    return AbortSignal.timeout(this.timing.renewLimitMs / 2);
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}
