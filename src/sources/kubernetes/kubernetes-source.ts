/**
 * Configuration, services and workloads from the API server of Kubernetes.
 *
 *     one follower per kind --objects--> known objects --(a moment later)--> snapshot --> subscribers
 *     ConfigMap istio -------mesh config-----^   ^   ^
 *     Secrets with kubeconfigs --> other clusters    files, instead of configuration and mesh config
 *
 * Nothing is published before every kind was read once: half of a mesh would be pushed as if the rest were gone.
 */
import type { MeshConfig } from "#config/mesh-config.ts";
import { sleep } from "#lib/async/sleep.ts";
import { isRecord } from "#lib/is-record.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import type { Logger } from "#lib/log.ts";
import type { Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { GatewayAddresses } from "#model/network-gateway.ts";
import type { ObjectProblem, Source, WorkloadEntries } from "#model/ports.ts";
import type { FileSource } from "../file/file-source.ts";
import { type MeshFile, missingMeshFile, NO_MESH_FILE, readMeshFile } from "../file/mesh-file.ts";
import { type NetworksFile, NO_NETWORKS_FILE, readNetworksFile, withNetworks } from "../file/networks-file.ts";
import { ProblemReporter } from "../report.ts";
import { SnapshotStore } from "../snapshot-store.ts";
import { type ClusterEvents, FollowedObjects } from "./followed-objects.ts";
import { CUSTOM_KINDS, FOLLOWED_TYPES } from "./followed-types.ts";
import { type ClusterStatus, RemoteClusters, type RemoteRules } from "./remote-clusters.ts";

export interface KubernetesSourceOptions {
  readonly api: KubernetesApi;
  readonly features: Features;
  readonly log: Logger;
  /** Configuration of other revisions is left out; empty: of none. */
  readonly revision: string;
  /** The ConfigMap whose keys `mesh` and `meshNetworks` are the mesh config; Secrets of other clusters are beside it. */
  readonly meshConfigMap: { readonly namespace: string; readonly name: string };
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
}

/** A source over an API server. Does nothing before `run`. */
export function kubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  return new ClusterSource(options);
}

/** Changes that come together are published together. */
const SETTLE_MS = 5;

class ClusterSource extends SnapshotStore implements KubernetesSource {
  readonly #options: KubernetesSourceOptions;
  readonly #reporter: ProblemReporter;
  readonly #own: FollowedObjects;
  readonly #meshName: string;
  #remotes: RemoteClusters | undefined;
  #mesh: MeshFile = NO_MESH_FILE;
  #networks: NetworksFile = NO_NETWORKS_FILE;
  #filesAreRead: boolean;
  #wake: () => void = () => {};

  constructor(options: KubernetesSourceOptions) {
    super(options.features, { byApiServer: true });
    const { api, revision, silenceMs, files, meshConfigMap, log, events } = options;
    this.#options = options;
    this.#reporter = new ProblemReporter(log);
    this.#meshName = `ConfigMap/${meshConfigMap.namespace}/${meshConfigMap.name}`;
    this.#filesAreRead = files === undefined;
    this.#own = new FollowedObjects({
      api,
      types: FOLLOWED_TYPES.filter(({ isCustom }) => !isCustom || files?.ofConfiguration !== true),
      revision,
      cluster: "",
      silenceMs,
      events,
      onChange: () => this.#wake(),
      observer: {
        put: (kind, object) => this.#see(kind, object),
        remove: (kind, object) => this.#miss(kind, object),
        replaced: (kind, objects) => this.#seeAll(kind, objects),
      },
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const { meshConfigMap, features, revision, log, files, events, remotes: rules } = this.#options;
    const onChange = () => this.#wake();
    this.#remotes = new RemoteClusters({
      meshConfigMap,
      clusterId: features.clusterId,
      revision,
      rules,
      log,
      signal,
      onChange,
      events,
    });
    files?.source.subscribe(() => {
      this.#filesAreRead = true;
      this.#wake();
    });
    const following = [this.#own.run(signal), ...(files === undefined ? [] : [files.source.run(signal)])];
    await this.#publishUntil(signal);
    await Promise.all([...following, this.#remotes.stop()]);
  }

  unread(): readonly string[] {
    return [...this.#own.unread(), ...(this.#remotes?.unread() ?? [])];
  }

  apiOf(clusterId: string): KubernetesApi | undefined {
    return this.#remotes?.apiOf(clusterId);
  }

  remoteClusters(): readonly ClusterStatus[] {
    return this.#remotes?.statuses() ?? [];
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
        await this.publishInSlices({ objects: this.#allObjects(), remotes, problems }, this.#effectiveMesh());
      }
      this.#reporter.report(problems);
      await changed;
      await sleep(SETTLE_MS, signal);
    }
    signal.removeEventListener("abort", stop);
  }

  #isRead(): boolean {
    return this.#own.isRead && this.#filesAreRead && this.#remotes?.isReady === true;
  }

  #allObjects() {
    const { files } = this.#options;
    const { objects } = this.#own.collection();
    if (files?.ofConfiguration !== true) return objects;
    return [...objects, ...files.source.objects().filter(({ kind }) => CUSTOM_KINDS.has(kind))];
  }

  #allProblems(): readonly ObjectProblem[] {
    const { files } = this.#options;
    const { problems } = this.#own.collection();
    const ofMesh = files?.ofMesh === true ? [] : [...this.#mesh.problems, ...this.#networks.problems];
    return [...problems, ...(this.#remotes?.problems() ?? []), ...ofMesh, ...(files?.source.problems() ?? [])];
  }

  #effectiveMesh(): MeshConfig {
    const { files } = this.#options;
    return files?.ofMesh === true ? files.source.current().mesh : withNetworks(this.#mesh.mesh, this.#networks);
  }

  #see(kind: string, object: RawObject): void {
    if (kind === "Secret") this.#remotes?.put(object);
    if (!this.#isMesh(kind, object)) return;
    const textOf = (key: string) => {
      const value = isRecord(object.data) ? object.data[key] : undefined;
      return typeof value === "string" ? value : undefined;
    };
    const [mesh = "", networks] = [textOf("mesh"), textOf("meshNetworks")];
    if (mesh !== this.#mesh.text) this.#mesh = readMeshFile(this.#meshName, mesh, this.#mesh);
    if (networks !== this.#networks.text)
      this.#networks = readNetworksFile(`${this.#meshName}/meshNetworks`, { text: networks }, this.#networks);
  }

  #miss(kind: string, object: RawObject): void {
    if (kind === "Secret") this.#remotes?.remove(object);
    if (this.#isMesh(kind, object)) this.#mesh = missingMeshFile(this.#meshName, this.#mesh);
  }

  #seeAll(kind: string, objects: readonly RawObject[]): void {
    if (kind === "Secret") this.#remotes?.replace(objects);
    if (kind !== "ConfigMap") return;
    if (!objects.some((object) => this.#isMesh(kind, object))) this.#mesh = missingMeshFile(this.#meshName, this.#mesh);
    for (const object of objects) this.#see(kind, object);
  }

  #isMesh(kind: string, { metadata }: RawObject): boolean {
    return `${kind}/${metadata.namespace}/${metadata.name}` === this.#meshName;
  }
}
