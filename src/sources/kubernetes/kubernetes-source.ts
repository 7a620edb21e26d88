/**
 * Configuration, services and workloads from the API server of Kubernetes.
 *
 *     one follower per kind --objects--> known objects --(a moment later)--> snapshot --> subscribers
 *     ConfigMap istio -------mesh config-----^   ^   ^
 *     Secrets with kubeconfigs --> other clusters    files, instead of configuration and mesh config
 *
 * Nothing is published before every kind was read once: half of a mesh would be pushed as if the rest were gone.
 */

import type { UnreadablePolicy } from "#config/kinds/unreadable-policy.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { sleep } from "#lib/async/sleep.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { ObjectProblem, Source, WorkloadEntries } from "#model/ports.ts";
import type { GatewayAddresses } from "#model/service/network-gateway.ts";
import type { FileSource } from "../file/file-source.ts";
import { ProblemReporter } from "../report.ts";
import { SnapshotStore } from "../snapshot-store.ts";
import { type ClusterEvents, FollowedObjects, type RawObserver } from "./followed-objects.ts";
import {
  CUSTOM_KINDS,
  FOLLOWED_TYPES,
  type FollowedType,
  limited,
  systemTypes,
  type TypeLimits,
} from "./followed-types.ts";
import { type MeshMapPlaces, MeshMaps } from "./mesh-maps.ts";
import { type ClusterStatus, RemoteClusters, type RemoteRules } from "./remote-clusters.ts";

export interface KubernetesSourceOptions {
  readonly api: KubernetesApi;
  readonly features: Features;
  readonly log: Logger;
  /** Configuration of other revisions is left out; empty: of none. */
  readonly revision: string;
  /** The ConfigMaps with the mesh config; Secrets of other clusters are beside them. */
  readonly meshConfigMap: MeshMapPlaces;
  /** Nothing is left out when not given. */
  readonly limits?: TypeLimits | undefined;
  readonly files?: FilesInstead | undefined;
  readonly remotes?: RemoteRules | undefined;
  /** A watch on which nothing came for this long is taken for dead. */
  readonly silenceMs?: number;
  /** Who counts. */
  readonly events?: ClusterEvents | undefined;
}

/** Files that take the place of a part of the cluster. */
export interface FilesInstead {
  readonly source: FileSource;
  /** Of all of Istio's kinds. */
  readonly ofConfiguration: boolean;
  /** Of the mesh config. */
  readonly ofMesh: boolean;
}

export interface KubernetesSource extends Source, WorkloadEntries {
  /** How long it took to build the newest snapshot. */
  buildSeconds(): number;
  takeKeySets(keySets: KeySets): void;
  /** Replaces what names of gateways between networks were resolved to. */
  takeGatewayAddresses(addresses: GatewayAddresses): void;
  /** Reads everything, calls the subscribers, then follows until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Kinds that could not be read so far, each with the reason: why the first snapshot is not there. */
  unread(): readonly string[];
  /** The API server of a further cluster; undefined for one that is not of the mesh. */
  apiOf(clusterId: string): KubernetesApi | undefined;
  /** Further clusters of the mesh. */
  remoteClusters(): readonly ClusterStatus[];
  /** What a further cluster has; undefined for one that is not of the mesh, or was not read yet. */
  objectsOf(clusterId: string): readonly ConfigObject[] | undefined;
}

/** A source over an API server. Does nothing before `run`. */
export function kubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  return new ClusterSource(options);
}

/** Changes that come together are published together; only one that comes after a while of silence is published alone. */
const SETTLE_MS = 5;
const SILENCE_MS = 4 * SETTLE_MS;

class ClusterSource extends SnapshotStore implements KubernetesSource {
  readonly #options: KubernetesSourceOptions;
  readonly #reporter: ProblemReporter;
  readonly #own: FollowedObjects;
  /** What else of the control plane's own namespace counts, where that is not the one that is followed. */
  readonly #system: FollowedObjects | undefined;
  readonly #meshMaps: MeshMaps;
  #remotes: RemoteClusters | undefined;
  #filesAreRead: boolean;
  #wake: () => void = () => {};

  constructor(options: KubernetesSourceOptions) {
    super(options.features, { byApiServer: true });
    const { files, meshConfigMap, log, limits = {} } = options;
    this.#options = options;
    this.#reporter = new ProblemReporter(log);
    this.#meshMaps = new MeshMaps(meshConfigMap);
    this.#filesAreRead = files === undefined;
    const observer: RawObserver = {
      put: (kind, object) => this.#see(kind, object),
      remove: (kind, object) => this.#miss(kind, object),
      replaced: (kind, objects) => this.#seeAll(kind, objects),
    };
    const types = FOLLOWED_TYPES.filter(({ isCustom }) => !isCustom || files?.ofConfiguration !== true);
    const isElsewhere = limits.namespace !== undefined && limits.namespace !== meshConfigMap.namespace;
    this.#own = this.#followed(limited(types, limits), isElsewhere ? undefined : observer);
    this.#system = isElsewhere ? this.#followed(systemTypes(meshConfigMap.namespace), observer) : undefined;
  }

  #followed(types: readonly FollowedType[], observer: RawObserver | undefined): FollowedObjects {
    const { api, revision, silenceMs, events } = this.#options;
    const onChange = () => this.#wake();
    return new FollowedObjects({
      api,
      types,
      revision,
      cluster: "",
      silenceMs,
      events,
      onChange,
      ...(observer && { observer }),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { meshConfigMap, features, revision, log, files, events, limits, remotes: rules } = this.#options;
    const onChange = () => this.#wake();
    this.#remotes = new RemoteClusters({
      meshConfigMap,
      clusterId: features.clusterId,
      revision,
      rules,
      limits,
      log,
      signal,
      onChange,
      events,
    });
    files?.source.subscribe(() => {
      this.#filesAreRead = true;
      this.#wake();
    });
    const following = [this.#own.run(signal), this.#system?.run(signal), files?.source.run(signal)];
    await this.#publishUntil(signal);
    await Promise.all([...following, this.#remotes.stop()]);
  }

  unread(): readonly string[] {
    return [...this.#own.unread(), ...(this.#system?.unread() ?? []), ...(this.#remotes?.unread() ?? [])];
  }

  apiOf(clusterId: string): KubernetesApi | undefined {
    return this.#remotes?.apiOf(clusterId);
  }

  remoteClusters(): readonly ClusterStatus[] {
    return this.#remotes?.statuses() ?? [];
  }

  objectsOf(clusterId: string): readonly ConfigObject[] | undefined {
    return this.#remotes?.objectsOf(clusterId);
  }

  async #publishUntil(signal: AbortSignal): Promise<void> {
    const stop = () => this.#wake();
    signal.addEventListener("abort", stop);
    while (!signal.aborted) {
      const changed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      const problems = this.#allProblems();
      if (this.#isRead()) {
        const remotes = this.#remotes?.clusters() ?? [];
        const collection = { objects: this.#allObjects(), unreadable: this.#allUnreadable(), remotes, problems };
        await this.publishInSlices(collection, this.#effectiveMesh());
      }
      this.#reporter.report(this.#isRead() ? this.problems() : problems);
      const publishedAt = performance.now();
      await changed;
      if (performance.now() - publishedAt < SILENCE_MS) await sleep(SETTLE_MS, signal);
    }
    signal.removeEventListener("abort", stop);
  }

  #isRead(): boolean {
    const isRead = this.#own.isRead && this.#system?.isRead !== false;
    return isRead && this.#filesAreRead && this.#remotes?.isReady === true;
  }

  #allObjects() {
    const { files } = this.#options;
    const { objects } = this.#own.collection();
    if (files?.ofConfiguration !== true) return objects;
    return [...objects, ...files.source.objects().filter(({ kind }) => CUSTOM_KINDS.has(kind))];
  }

  #allUnreadable(): readonly ConfigObject<UnreadablePolicy>[] {
    const { files } = this.#options;
    const { unreadable } = this.#own.collection();
    return files?.ofConfiguration === true ? [...unreadable, ...files.source.unreadable()] : unreadable;
  }

  #allProblems(): readonly ObjectProblem[] {
    const { files } = this.#options;
    const { problems } = this.#own.collection();
    return [
      ...problems,
      ...(this.#remotes?.problems() ?? []),
      ...this.#meshMaps.problems(files?.ofMesh === true),
      ...(files?.source.problems() ?? []),
    ];
  }

  #effectiveMesh(): MeshConfig {
    const { files } = this.#options;
    return this.#meshMaps.effective(files?.ofMesh === true ? files.source.meshFiles() : undefined);
  }

  #see(kind: string, object: RawObject): void {
    if (kind === "Secret") this.#remotes?.put(object);
    if (kind === "ConfigMap") this.#meshMaps.put(object);
  }

  #miss(kind: string, object: RawObject): void {
    if (kind === "Secret") this.#remotes?.remove(object);
    if (kind === "ConfigMap") this.#meshMaps.remove(object);
  }

  #seeAll(kind: string, objects: readonly RawObject[]): void {
    if (kind === "Secret") this.#remotes?.replace(objects);
    if (kind === "ConfigMap") this.#meshMaps.replace(objects);
  }
}
