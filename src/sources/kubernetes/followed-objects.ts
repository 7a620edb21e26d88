/** The objects of one cluster, followed: one list and watch per kind. */
import { Backoff } from "#lib/async/backoff.ts";
import { Slices } from "#lib/async/slices.ts";
import { ApiError, connectionTrouble, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { type Follower, follow } from "#lib/kubernetes/follow.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import { resourceName } from "#lib/kubernetes/resource-types.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { Collection } from "../object-table.ts";
import type { FollowedType } from "./followed-types.ts";
import { KnownObjects, type ObjectEvent } from "./known-objects.ts";

export interface FollowedObjectsOptions {
  readonly api: KubernetesApi;
  readonly types: readonly FollowedType[];
  readonly revision: string;
  /** What the cluster is called in messages; empty for our own. */
  readonly cluster: string;
  /** A watch on which nothing came for this long is taken for dead. */
  readonly silenceMs?: number | undefined;
  /** Called after each change of what is known. */
  readonly onChange: () => void;
  /** Sees objects as the API server sends them. */
  readonly observer?: RawObserver;
  /** Who counts. */
  readonly events?: ClusterEvents | undefined;
}

/** Figures about what API servers tell. */
export interface ClusterEvents {
  /** An object came, changed or went, or several did. */
  happened(type: FollowedType, event: ObjectEvent, times?: number): void;
  /** A kind could not be read; the cluster is empty for our own. */
  failed(cluster: string): void;
  /** A Secret with kubeconfigs of further clusters came, changed or went. */
  secret(event: ObjectEvent): void;
}

/** Wants more of objects than their checked form. */
export interface RawObserver {
  put(kind: string, object: RawObject): void;
  remove(kind: string, object: RawObject): void;
  /** All there are of a kind: what is not among them is gone. */
  replaced(kind: string, objects: readonly RawObject[]): void;
}

const SLICE_MS = 5;
const RETRY = { initialMs: 200, maxMs: 10_000 };

export class FollowedObjects {
  readonly #options: FollowedObjectsOptions;
  readonly #known: KnownObjects;
  readonly #unread: Map<FollowedType, string>;
  readonly #troubles = new Map<FollowedType, ObjectProblem>();

  constructor(options: FollowedObjectsOptions) {
    this.#options = options;
    this.#known = new KnownObjects(options.revision);
    this.#unread = new Map(options.types.map((type) => [type, "not read yet"]));
  }

  async run(signal: AbortSignal): Promise<void> {
    const { api, types, silenceMs } = this.#options;
    await Promise.all(
      types.map((type) => {
        const { fieldSelector, labelSelector, namespace } = type;
        const which = { type, fieldSelector, labelSelector, namespace };
        const common = { api, ...which, signal, backoff: new Backoff(RETRY) };
        return follow({ ...common, follower: this.#followerOf(type), ...(silenceMs !== undefined && { silenceMs }) });
      }),
    );
  }

  /** Whether every kind was read once. */
  get isRead(): boolean {
    return this.#unread.size === 0;
  }

  /** Kinds that could not be read so far, each with the reason. */
  unread(): readonly string[] {
    return [...this.#unread].map(([type, reason]) => `${this.#nameOf(type)}: ${reason}`);
  }

  /** What is known, and what is wrong with that. */
  collection(): Collection {
    const { problems, ...found } = this.#known.collection();
    return { ...found, problems: [...problems, ...this.#distinctTroubles()] };
  }

  /** A server that is away is one trouble, not one for each kind. */
  #distinctTroubles(): Iterable<ObjectProblem> {
    const troubles = [...this.#troubles.values()];
    return new Map(troubles.map((trouble) => [`${trouble.object} ${trouble.message}`, trouble])).values();
  }

  #followerOf(type: FollowedType): Follower {
    const { kind } = type;
    const { onChange, observer, events } = this.#options;
    const put = (object: RawObject) => {
      const event = this.#known.put(kind, object);
      if (event !== undefined) events?.happened(type, event);
    };
    const slices = new Slices(() => performance.now(), SLICE_MS);
    return {
      replace: async (objects) => {
        for (const object of objects) {
          if (slices.isOver) await slices.next();
          put(object);
        }
        const gone = this.#known.keepOnly(kind, objects);
        if (gone > 0) events?.happened(type, "delete", gone);
        observer?.replaced(kind, objects);
        this.#haveRead(type);
      },
      put: (object) => {
        put(object);
        observer?.put(kind, object);
        onChange();
      },
      remove: (object) => {
        if (this.#known.remove(kind, object)) events?.happened(type, "delete");
        observer?.remove(kind, object);
        onChange();
      },
      trouble: (problem) => this.#trouble(type, problem),
      failed: () => events?.failed(this.#options.cluster),
    };
  }

  #haveRead(type: FollowedType): void {
    this.#unread.delete(type);
    this.#troubles.delete(type);
    this.#options.onChange();
  }

  #trouble(type: FollowedType, problem: unknown): void {
    const { onChange } = this.#options;
    if (problem === undefined) {
      if (this.#troubles.delete(type)) onChange();
      return;
    }
    // Not installed, or not any more: then there are no such objects.
    if (type.isCustom && problem instanceof ApiError && problem.status === 404) {
      this.#known.keepOnly(type.kind, []);
      this.#haveRead(type);
      return;
    }
    if (type.isOptional && problem instanceof ApiError && problem.status === 403) this.#unread.delete(type);
    const ofServer = connectionTrouble(problem);
    const message = ofServer ?? troubleText(problem, type);
    if (this.#unread.has(type)) this.#unread.set(type, message);
    const object = ofServer === undefined ? this.#nameOf(type) : this.#serverName();
    const what = { object, field: "", severity: "error", origin: undefined } as const;
    this.#troubles.set(type, { ...what, message: `cannot be read: what was known holds: ${message}` });
    onChange();
  }

  #serverName(): string {
    const { cluster } = this.#options;
    return cluster === "" ? "API server" : `cluster "${cluster}"`;
  }

  #nameOf(type: FollowedType): string {
    const { cluster } = this.#options;
    return cluster === "" ? resourceName(type) : `cluster "${cluster}": ${resourceName(type)}`;
  }
}
