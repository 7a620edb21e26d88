/** The newest snapshot and those who want to hear of the next: the half of a source that does not depend on where it reads. */
import type { ConfigObject } from "#config/config-object.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh-config.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { ObjectProblem, Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Collection } from "./object-table.ts";

export class SnapshotStore implements Source {
  readonly #features: Features;
  readonly #subscribers = new Set<(snapshot: Snapshot) => void>();
  #snapshot: Snapshot;
  #collection: Collection = { objects: [], problems: [] };
  #published = false;
  #mesh: MeshConfig = DEFAULT_MESH_CONFIG;
  #keySets: KeySets = new Map();

  constructor(features: Features) {
    this.#features = features;
    this.#snapshot = buildSnapshot({ objects: [], mesh: DEFAULT_MESH_CONFIG, features });
  }

  /** Replaces the configuration. Subscribers are called if that changes the mesh, and in any case the first time. */
  publish(collection: Collection, mesh: MeshConfig): void {
    this.#collection = collection;
    this.#mesh = mesh;
    const isFirst = !this.#published;
    this.#published = true;
    this.#build(isFirst);
  }

  /** Replaces the fetched keys of token issuers. */
  takeKeySets(keySets: KeySets): void {
    this.#keySets = keySets;
    if (this.#published) this.#build(false);
  }

  #build(isFirst: boolean): void {
    const previous = this.#snapshot;
    this.#snapshot = buildSnapshot({
      objects: this.#collection.objects,
      mesh: this.#mesh,
      features: this.#features,
      keySets: this.#keySets,
      previous,
    });
    if (!isFirst && this.#snapshot === previous) return;
    for (const notify of [...this.#subscribers]) notify(this.#snapshot);
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
