/** The newest snapshot and those who want to hear of the next: the half of a source that does not depend on where it reads. */

import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { buildSnapshot, type SnapshotInput, snapshotSteps } from "#convert/snapshot.ts";
import { Slices } from "#lib/async/slices.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { ObjectProblem, Source, WorkloadEntries } from "#model/ports.ts";
import type { GatewayAddresses } from "#model/service/network-gateway.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { denialProblems } from "./denials.ts";
import type { Collection } from "./object-table.ts";

/** Work goes on for this long before others get their turn. */
const SLICE_MS = 5;

export class SnapshotStore implements Source, WorkloadEntries {
  readonly #features: Features;
  readonly #byApiServer: boolean;
  readonly #subscribers = new Set<(snapshot: Snapshot) => void>();
  #snapshot: Snapshot;
  #collection: Collection = { objects: [], problems: [], unreadable: [] };
  #published = false;
  #buildMs = 0;
  /** In slices, which later changes must not overtake. */
  #building = false;
  /** Something changed while it was built. */
  #outdated = false;
  #mesh: MeshConfig = DEFAULT_MESH_CONFIG;
  #keySets: KeySets = new Map();
  #gatewayAddresses: GatewayAddresses = new Map();
  /** Entries of workloads that registered themselves, by key: they live as long as this process. */
  readonly #registered = new Map<string, ConfigObject>();

  constructor(features: Features, { byApiServer = false } = {}) {
    this.#features = features;
    this.#byApiServer = byApiServer;
    this.#snapshot = buildSnapshot({ objects: [], mesh: DEFAULT_MESH_CONFIG, features });
  }

  /** Replaces the configuration. Subscribers are called if that changes the mesh, and in any case the first time. */
  publish(collection: Collection, mesh: MeshConfig): void {
    this.#take(collection, mesh);
    this.#buildAtOnce();
  }

  /** The same in slices of the event loop. One after the other: who publishes waits until it is done. */
  async publishInSlices(collection: Collection, mesh: MeshConfig): Promise<void> {
    this.#take(collection, mesh);
    const slices = new Slices(() => performance.now(), SLICE_MS);
    this.#building = true;
    this.#outdated = false;
    const start = performance.now();
    const next = await slices.run(snapshotSteps(this.#input()));
    this.#buildMs = performance.now() - start;
    this.#building = false;
    this.#adopt(next);
    if (this.#outdated) this.#rebuild();
  }

  /** Replaces the fetched keys of token issuers. */
  takeKeySets(keySets: KeySets): void {
    this.#keySets = keySets;
    this.#rebuild();
  }

  /** Replaces what names of gateways between networks were resolved to. */
  takeGatewayAddresses(addresses: GatewayAddresses): void {
    this.#gatewayAddresses = addresses;
    this.#rebuild();
  }

  async put(entry: ConfigObject): Promise<void> {
    this.#registered.set(objectKey(entry), entry);
    this.#rebuild();
  }

  async remove(entry: ConfigObject): Promise<void> {
    if (this.#registered.delete(objectKey(entry))) this.#rebuild();
  }

  #rebuild(): void {
    this.#outdated = this.#building;
    if (this.#published && !this.#building) this.#buildAtOnce();
  }

  #buildAtOnce(): void {
    const start = performance.now();
    const next = buildSnapshot(this.#input());
    this.#buildMs = performance.now() - start;
    this.#adopt(next);
  }

  #take(collection: Collection, mesh: MeshConfig): void {
    this.#collection = collection;
    this.#mesh = mesh;
  }

  #input(): SnapshotInput {
    const objects = this.objects();
    return {
      objects,
      unreadable: this.#collection.unreadable,
      remotes: this.#collection.remotes,
      mesh: this.#mesh,
      features: this.#features,
      keySets: this.#keySets,
      gatewayAddresses: this.#gatewayAddresses,
      byApiServer: this.#byApiServer,
      previous: this.#snapshot,
    };
  }

  /** How long it took to build the newest snapshot. */
  buildSeconds(): number {
    return this.#buildMs / 1000;
  }

  #adopt(next: Snapshot): void {
    const isNew = !this.#published || next !== this.#snapshot;
    this.#published = true;
    this.#snapshot = next;
    if (isNew) for (const notify of [...this.#subscribers]) notify(next);
  }

  current(): Snapshot {
    return this.#snapshot;
  }

  /** Those of the configuration, with the health that was reported of them, and entries that registered themselves. */
  objects(): readonly ConfigObject[] {
    const { objects } = this.#collection;
    if (this.#registered.size === 0) return objects;
    const others = new Map(this.#registered);
    const own = objects.map((object) => {
      const key = object.kind === "WorkloadEntry" ? objectKey(object) : "";
      const registered = others.get(key);
      others.delete(key);
      return registered !== undefined && registered.spec === object.spec ? registered : object;
    });
    return [...own, ...others.values()];
  }

  problems(): readonly ObjectProblem[] {
    const { problems, unreadable } = this.#collection;
    if (unreadable.length === 0) return problems;
    const denies = this.#features.unreadableDeny;
    return [...problems, ...denialProblems(unreadable, { denies, rootNamespace: this.#mesh.rootNamespace })];
  }

  subscribe(onSnapshot: (snapshot: Snapshot) => void): () => void {
    this.#subscribers.add(onSnapshot);
    return () => void this.#subscribers.delete(onSnapshot);
  }
}
