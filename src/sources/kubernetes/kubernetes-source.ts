/**
 * Configuration, services and workloads from the API server of Kubernetes.
 *
 *     one follower per kind --objects--> known objects --(a moment later)--> snapshot --> subscribers
 *     ConfigMap istio -------mesh config-----^
 *
 * Nothing is published before every kind was read once: half of a mesh would be pushed as if the rest were gone.
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { Slices } from "#lib/async/slices.ts";
import { isRecord } from "#lib/is-record.ts";
import { ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { type Follower, follow, troubleText } from "#lib/kubernetes/follow.ts";
import { resourceName } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { ObjectProblem, Source, WorkloadEntries } from "#model/ports.ts";
import { type MeshFile, missingMeshFile, NO_MESH_FILE, readMeshFile } from "../file/mesh-file.ts";
import { ProblemReporter } from "../report.ts";
import { SnapshotStore } from "../snapshot-store.ts";
import { FOLLOWED_TYPES, type FollowedType } from "./followed-types.ts";
import { KnownObjects } from "./known-objects.ts";

export interface KubernetesSourceOptions {
  readonly api: KubernetesApi;
  readonly features: Features;
  readonly log: Logger;
  readonly revision: string;
  /** The ConfigMap whose key `mesh` is the mesh config. */
  readonly meshConfigMap: { readonly namespace: string; readonly name: string };
  /** A watch on which nothing came for this long is taken for dead. */
  readonly silenceMs?: number;
}

export interface KubernetesSource extends Source, WorkloadEntries {
  /** How long it took to build the newest snapshot. */
  buildSeconds(): number;
  takeKeySets(keySets: KeySets): void;
  /** Reads everything, calls the subscribers, then follows until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Kinds that could not be read so far, each with the reason: why the first snapshot is not there. */
  unread(): readonly string[];
}

/** A source over an API server. Does nothing before `run`. */
export function kubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  return new FollowedCluster(options);
}

/** Changes that come together are published together. */
const SETTLE_MS = 5;
const SLICE_MS = 5;
const RETRY = { initialMs: 200, maxMs: 10_000 };

class FollowedCluster extends SnapshotStore implements KubernetesSource {
  readonly #options: KubernetesSourceOptions;
  readonly #known: KnownObjects;
  readonly #reporter: ProblemReporter;
  readonly #unread = new Map<FollowedType, string>(FOLLOWED_TYPES.map((type) => [type, "not read yet"]));
  readonly #troubles = new Map<FollowedType, ObjectProblem>();
  readonly #meshName: string;
  #mesh: MeshFile = NO_MESH_FILE;
  #wake: () => void = () => {};

  constructor(options: KubernetesSourceOptions) {
    super(options.features, { byApiServer: true });
    this.#options = options;
    this.#known = new KnownObjects(options.revision);
    this.#reporter = new ProblemReporter(options.log);
    this.#meshName = `ConfigMap/${options.meshConfigMap.namespace}/${options.meshConfigMap.name}`;
    this.#mesh = missingMeshFile(this.#meshName, NO_MESH_FILE);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { api, silenceMs } = this.#options;
    const following = FOLLOWED_TYPES.map((type) => {
      const { fieldSelector } = type;
      const follower = this.#followerOf(type);
      const backoff = new Backoff(RETRY);
      return follow({
        api,
        type,
        fieldSelector,
        follower,
        backoff,
        signal,
        ...(silenceMs !== undefined && { silenceMs }),
      });
    });
    await this.#publishUntil(signal);
    await Promise.all(following);
  }

  unread(): readonly string[] {
    return [...this.#unread].map(([type, reason]) => `${resourceName(type)}: ${reason}`);
  }

  async #publishUntil(signal: AbortSignal): Promise<void> {
    const stop = () => this.#wake();
    signal.addEventListener("abort", stop);
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      if (this.#unread.size === 0) {
        const { objects, problems } = this.#known.collection();
        const all = [...problems, ...this.#troubles.values(), ...this.#mesh.problems];
        await this.publishInSlices({ objects, problems: all }, this.#mesh.mesh);
        this.#reporter.report(all);
      } else this.#reporter.report([...this.#troubles.values()]);
      await changed;
      await sleep(SETTLE_MS, signal);
    }
    signal.removeEventListener("abort", stop);
  }

  #followerOf(type: FollowedType): Follower {
    const { kind } = type;
    const slices = new Slices(() => performance.now(), SLICE_MS);
    return {
      replace: async (objects) => {
        for (const object of objects) {
          if (slices.isOver) await slices.next();
          this.#put(kind, object);
        }
        this.#known.keepOnly(kind, objects);
        this.#haveRead(type);
      },
      put: (object) => {
        this.#put(kind, object);
        this.#wake();
      },
      remove: (object) => {
        this.#known.remove(kind, object);
        if (this.#isMesh(kind, object)) this.#mesh = missingMeshFile(this.#meshName, this.#mesh);
        this.#wake();
      },
      trouble: (problem) => this.#trouble(type, problem),
    };
  }

  #put(kind: string, object: RawObject): void {
    this.#known.put(kind, object);
    if (!this.#isMesh(kind, object)) return;
    const text = isRecord(object.data) && typeof object.data.mesh === "string" ? object.data.mesh : "";
    if (text !== this.#mesh.text) this.#mesh = readMeshFile(this.#meshName, text, this.#mesh);
  }

  #isMesh(kind: string, { metadata }: RawObject): boolean {
    return `${kind}/${metadata.namespace}/${metadata.name}` === this.#meshName;
  }

  #haveRead(type: FollowedType): void {
    this.#unread.delete(type);
    this.#troubles.delete(type);
    this.#wake();
  }

  #trouble(type: FollowedType, problem: unknown): void {
    if (problem === undefined) {
      if (this.#troubles.delete(type)) this.#wake();
      return;
    }
    // Not installed, or not any more: then there are no such objects.
    if (type.isCustom && problem instanceof ApiError && problem.status === 404) {
      this.#known.keepOnly(type.kind, []);
      this.#haveRead(type);
      return;
    }
    const message = troubleText(problem, type);
    if (this.#unread.has(type)) this.#unread.set(type, message);
    const what = { object: resourceName(type), field: "", severity: "error", origin: undefined } as const;
    this.#troubles.set(type, { ...what, message: `cannot be read: what was known holds: ${message}` });
    this.#wake();
  }
}
