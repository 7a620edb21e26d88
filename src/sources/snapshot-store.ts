/** The newest snapshot and those who want to hear of the next: the half of a source that does not depend on where it reads. */
import type { ConfigObject } from "#config/config-object.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh-config.ts";
import { buildSnapshot, type SnapshotInput, snapshotSteps } from "#convert/snapshot.ts";
import { Slices } from "#lib/async/slices.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { ObjectProblem, Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Collection } from "./object-table.ts";

/** Work goes on for this long before others get their turn. */
const SLICE_MS = 5;

export class SnapshotStore implements Source {
  readonly #features: Features;
  readonly #subscribers = new Set<(snapshot: Snapshot) => void>();
  #snapshot: Snapshot;
  #collection: Collection = { objects: [], problems: [] };
  #published = false;
  /** In slices, which later changes must not overtake. */
  #building = false;
  #mesh: MeshConfig = DEFAULT_MESH_CONFIG;
  #keySets: KeySets = new Map();

  constructor(features: Features) {
    this.#features = features;
    this.#snapshot = buildSnapshot({ objects: [], mesh: DEFAULT_MESH_CONFIG, features });
  }

  /** Replaces the configuration. Subscribers are called if that changes the mesh, and in any case the first time. */
  publish(collection: Collection, mesh: MeshConfig): void {
    this.#take(collection, mesh);
    this.#adopt(buildSnapshot(this.#input()));
  }

  /** The same in slices of the event loop. One after the other: who publishes waits until it is done. */
  async publishInSlices(collection: Collection, mesh: MeshConfig): Promise<void> {
    this.#take(collection, mesh);
    const slices = new Slices(() => performance.now(), SLICE_MS);
    const keySets = this.#keySets;
    this.#building = true;
    const next = await slices.run(snapshotSteps(this.#input()));
    this.#building = false;
    this.#adopt(next);
    if (this.#keySets !== keySets) this.takeKeySets(this.#keySets);
  }

  /** Replaces the fetched keys of token issuers. */
  takeKeySets(keySets: KeySets): void {
    this.#keySets = keySets;
    if (this.#published && !this.#building) this.#adopt(buildSnapshot(this.#input()));
  }

  #take(collection: Collection, mesh: MeshConfig): void {
    this.#collection = collection;
    this.#mesh = mesh;
  }

  #input(): SnapshotInput {
    const { objects } = this.#collection;
    const [mesh, features, keySets] = [this.#mesh, this.#features, this.#keySets];
    return { objects, mesh, features, keySets, previous: this.#snapshot };
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

  objects(): readonly ConfigObject[] {
    return this.#collection.objects;
  }

  problems(): readonly ObjectProblem[] {
    return this.#collection.problems;
  }

  subscribe(onSnapshot: (snapshot: Snapshot) => void): () => void {
    this.#subscribers.add(onSnapshot);
    return () => void this.#subscribers.delete(onSnapshot);
  }
}
