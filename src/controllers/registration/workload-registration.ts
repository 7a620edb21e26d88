/**
 * Workloads outside Kubernetes register themselves: while the proxy of one is connected, there is a WorkloadEntry for it,
 * made after its WorkloadGroup, with the health that its agent reports. Some time after it left, the entry goes.
 *
 *     connected, health, disconnected --> facts by entry --> queue --> next entry (pure) --> WorkloadEntries
 *                                                              ^------ after the grace period
 */

import type { WorkloadGroup } from "#config/kinds/workload-group/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log/log.ts";
import type { ObservedProxy, ProxyObserver, Source, WorkloadEntries } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { WorkQueue } from "../work-queue.ts";
import {
  connectedEntry,
  disconnectedEntry,
  type EntryObject,
  entryOfGroup,
  expiredEntry,
  isControlledBy,
  type Registration,
  refusalOf,
  registrationOf,
  takesHealth,
  withHealth,
} from "./registered-entry.ts";

export interface RegistrationOptions {
  readonly source: Source;
  readonly entries: WorkloadEntries;
  /** This control plane among its replicas. */
  readonly instance: string;
  /** How long a workload may be away. */
  readonly graceMs: number;
  /** Whether proxies have to prove that they are the workload of their entry. */
  readonly checksIdentity: boolean;
  /** Told of each workload that comes for a group which is not there. */
  readonly onMissingGroup: () => void;
  readonly log: Logger;
  readonly now: () => number;
  /** Calls back once; gives the way to prevent it. */
  readonly after: (ms: number, callback: () => void) => () => void;
}

/** What is known of a workload that came. */
interface Facts {
  readonly registration: Registration;
  /** The proxy that came last. */
  readonly last: ObservedProxy;
  readonly connections: ReadonlySet<string>;
  readonly leftAt: string | undefined;
  readonly health: { readonly problem: string | undefined; readonly at: string } | undefined;
}

export class WorkloadRegistration implements ProxyObserver {
  readonly #options: RegistrationOptions;
  readonly #facts = new Map<string, Facts>();
  /** As last written, while the source does not show it yet. What it has shown, and shows no more, is gone. */
  readonly #written = new Map<string, EntryObject>();
  readonly #timers = new Map<string, () => void>();
  readonly #queue: WorkQueue;
  readonly #unsubscribe: () => void;
  /** Those that there were last. */
  #groups: readonly ConfigObject<WorkloadGroup>[] = [];

  constructor(options: RegistrationOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({
      work: (key) => this.#settle(key),
      failed: (key, problem) => options.log.warn("cannot write WorkloadEntry", { key, reason: refusalText(problem) }),
    });
    this.#unsubscribe = options.source.subscribe((snapshot) => this.#follow(snapshot));
  }

  connected(observed: ObservedProxy): string | undefined {
    const registration = registrationOf(observed.proxy);
    if (registration === undefined) return undefined;
    const key = keyOf(registration);
    const entry = this.#find(key) ?? this.#entryFor(registration, observed);
    if (entry === undefined) {
      if (registration.group !== undefined) this.#options.onMissingGroup();
      return missing(registration);
    }
    if (registration.group === undefined && !takesHealth(entry)) return undefined;
    const refusal = this.#options.checksIdentity ? refusalOf(observed.proxy, entry) : undefined;
    if (refusal !== undefined) return `Cannot register ${key}: ${refusal}`;
    const known = this.#facts.get(key);
    const connections = new Set([...(known?.connections ?? []), observed.connectionId]);
    this.#timers.get(key)?.();
    this.#facts.set(key, { registration, last: observed, connections, leftAt: undefined, health: known?.health });
    this.#queue.add(key);
    return undefined;
  }

  disconnected({ proxy, connectionId }: ObservedProxy): void {
    const registration = registrationOf(proxy);
    const key = registration && keyOf(registration);
    const known = key === undefined ? undefined : this.#facts.get(key);
    if (key === undefined || known?.connections.has(connectionId) !== true) return;
    const connections = new Set([...known.connections].filter((id) => id !== connectionId));
    const leftAt = connections.size === 0 ? this.#instant() : undefined;
    this.#facts.set(key, { ...known, connections, leftAt });
    if (connections.size > 0) return;
    this.#timers.set(
      key,
      this.#options.after(this.#options.graceMs, () => this.#queue.add(key)),
    );
    this.#queue.add(key);
  }

  health({ proxy, connectionId }: ObservedProxy, problem: string | undefined): void {
    const registration = registrationOf(proxy);
    const key = registration && keyOf(registration);
    const known = key === undefined ? undefined : this.#facts.get(key);
    if (key === undefined || known?.connections.has(connectionId) !== true) return;
    this.#facts.set(key, { ...known, health: { problem, at: this.#instant() } });
    this.#queue.add(key);
  }

  /** Ends what waits. Entries stay as they are: other replicas, or the next start, see to them. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    for (const cancel of this.#timers.values()) cancel();
    await this.#queue.stop();
  }

  #follow({ workloadGroups: groups }: Snapshot): void {
    if (this.#written.size > 0) {
      for (const object of this.#options.source.objects()) this.#written.delete(objectKey(object));
    }
    if (groups === this.#groups) return;
    const before = new Set(this.#groups.map(objectKey));
    const came = new Set(groups.map(objectKey).filter((key) => !before.has(key)));
    this.#groups = groups;
    // With a group its entries go. When it comes back, workloads of it may still be connected.
    for (const [key, { registration, leftAt }] of this.#facts) {
      const { namespace, group } = registration;
      if (leftAt === undefined && came.has(`WorkloadGroup/${namespace}/${group}`)) this.#queue.add(key);
    }
  }

  #instant(): string {
    return new Date(this.#options.now()).toISOString();
  }

  #find(key: string): EntryObject | undefined {
    return this.#shown(key) ?? this.#written.get(key);
  }

  #shown(key: string): EntryObject | undefined {
    return this.#options.source.objects().find((object) => objectKey(object) === key) as EntryObject | undefined;
  }

  #entryFor(registration: Registration, { proxy }: ObservedProxy): EntryObject | undefined {
    const { namespace, group: name } = registration;
    const group = this.#options.source
      .objects()
      .find(
        ({ kind, metadata }) => kind === "WorkloadGroup" && metadata.namespace === namespace && metadata.name === name,
      );
    return group && entryOfGroup(group as ConfigObject<WorkloadGroup>, proxy, registration);
  }

  async #settle(key: string): Promise<void> {
    const facts = this.#facts.get(key);
    if (facts === undefined) return;
    const before = this.#find(key);
    const next = facts.leftAt === undefined ? this.#present(facts, before) : this.#absent(facts, before);
    if (next === "removed") {
      if (before !== undefined) await this.#options.entries.remove(before);
      this.#forget(key);
    } else if (next !== undefined && next !== before) {
      await this.#options.entries.put(next, before);
      if (this.#shown(key) === undefined) this.#written.set(key, next);
    }
  }

  #present({ registration, last, health }: Facts, before: EntryObject | undefined): EntryObject | undefined {
    const { instance } = this.#options;
    const base = before ?? this.#entryFor(registration, last);
    const at = new Date(last.connectedAt).toISOString();
    const entry = base && connectedEntry(base, instance, at);
    if (entry === undefined || health === undefined || !takesHealth(entry)) return entry;
    return withHealth(entry, health.problem, health.at);
  }

  #absent({ last, leftAt = "" }: Facts, before: EntryObject | undefined): EntryObject | "removed" | undefined {
    const { instance, graceMs, now } = this.#options;
    if (before === undefined) return "removed";
    if (!isControlledBy(before, instance)) return undefined;
    const connectedAt = new Date(last.connectedAt).toISOString();
    const entry = disconnectedEntry(before, instance, { connectedAt, at: leftAt });
    return entry && (expiredEntry(entry, now(), graceMs) ?? entry);
  }

  #forget(key: string): void {
    this.#facts.delete(key);
    this.#written.delete(key);
    this.#timers.delete(key);
  }
}

function keyOf({ namespace, name }: Registration): string {
  return `WorkloadEntry/${namespace}/${name}`;
}

function missing({ namespace, name, group }: Registration): string {
  const what = group === undefined ? `WorkloadEntry "${namespace}/${name}"` : `WorkloadGroup "${namespace}/${group}"`;
  return `Cannot register ${namespace}/${name}: there is no ${what}`;
}
