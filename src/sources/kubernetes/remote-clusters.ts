/**
 * Further clusters of the mesh: each Secret with label `istio/multiCluster=true` in the control plane's namespace has a
 * kubeconfig per cluster id. Clusters come and go with them; one that is down is waited for at the start, but not for long.
 */
import { createHash } from "node:crypto";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { RemoteCluster } from "#convert/clusters/remote-clusters.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { type KubeConfigRules, untrustedKubeConfig } from "#lib/kubernetes/kube-config.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { ObjectProblem } from "#model/ports.ts";
import { NO_MESH_FILE, readMeshFile } from "../file/mesh-file.ts";
import { type ClusterEvents, FollowedObjects, type RawObserver } from "./followed-objects.ts";
import { CLUSTER_LABEL, limited, type MapPlace, remoteTypes, type TypeLimits } from "./followed-types.ts";

export interface RemoteClustersOptions {
  /** The mesh config, in each of them; Secrets of clusters are beside our own. */
  readonly meshConfigMap: MapPlace;
  /** Our own cluster: nobody else is called so. */
  readonly clusterId: string;
  readonly revision: string;
  readonly rules?: RemoteRules | undefined;
  readonly limits?: TypeLimits | undefined;
  readonly onChange: () => void;
  /** Who counts. */
  readonly events?: ClusterEvents | undefined;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** How far a further cluster was read. */
export interface ClusterStatus {
  readonly id: string;
  /** `namespace/name` of the Secret it came with. */
  readonly secret: string;
  readonly status: "synced" | "syncing" | "timeout";
}

/** What an operator says of further clusters. */
export interface RemoteRules extends KubeConfigRules {
  /** A cluster that cannot be read by then is one without objects, until it can; 0: it is waited for for ever. */
  readonly patienceMs?: number | undefined;
  /** Whether WorkloadEntries of these clusters are of the mesh; they are unless it is said. */
  readonly withEntries?: boolean | undefined;
}

interface Member {
  readonly api: KubernetesApi;
  /** Of the kubeconfig. */
  readonly digest: string;
  readonly objects: FollowedObjects;
  readonly mesh: RemoteMesh;
  readonly stop: AbortController;
  readonly running: Promise<void>;
  isAwaited: boolean;
  /** As last given, as long as nothing changed. */
  cluster: RemoteCluster;
}

const PATIENCE_MS = 30_000;

export class RemoteClusters {
  readonly #options: RemoteClustersOptions;
  /** By the name of their Secret, then by id. */
  readonly #bySecret = new Map<string, Map<string, Member>>();

  constructor(options: RemoteClustersOptions) {
    this.#options = options;
  }

  /** All Secrets there are. */
  replace(secrets: readonly RawObject[]): void {
    const named = new Set(secrets.filter((secret) => this.#isOurs(secret)).map(({ metadata }) => metadata.name));
    for (const name of this.#bySecret.keys()) if (!named.has(name)) this.#leave(name);
    for (const secret of secrets) this.put(secret);
  }

  put(secret: RawObject): void {
    const { name, namespace } = secret.metadata;
    if (namespace !== this.#options.meshConfigMap.namespace) return;
    if (!this.#isOurs(secret)) {
      this.remove(secret);
      return;
    }
    this.#options.events?.secret(this.#bySecret.has(name) ? "update" : "add");
    this.#takeMembers(name, isRecord(secret.data) ? secret.data : {});
  }

  remove({ metadata: { name, namespace } }: RawObject): void {
    if (namespace === this.#options.meshConfigMap.namespace && this.#bySecret.has(name)) this.#leave(name);
  }

  /** Which there are. */
  statuses(): readonly ClusterStatus[] {
    const { namespace } = this.#options.meshConfigMap;
    return [...this.#bySecret].flatMap(([secret, members]) =>
      [...members].map(([id, { objects, isAwaited }]) => {
        const status = objects.isRead ? "synced" : isAwaited ? "syncing" : "timeout";
        return { id, secret: `${namespace}/${secret}`, status } as const;
      }),
    );
  }

  /** Whether what there is can be published: every cluster was read, or does not let itself be read. */
  get isReady(): boolean {
    return this.#members().every(([, { isAwaited, objects }]) => !isAwaited || objects.isRead);
  }

  unread(): readonly string[] {
    return this.#members().flatMap(([, { isAwaited, objects }]) => (isAwaited ? objects.unread() : []));
  }

  /** What each of them has, in the order of their ids; the same value as long as it has not changed. */
  clusters(): readonly RemoteCluster[] {
    return this.#members().map(([clusterId, member]) => {
      const { objects } = member.objects.collection();
      const { trustDomain } = member.mesh;
      const isSame = hasSame(member.cluster.objects, objects) && member.cluster.trustDomain === trustDomain;
      if (!isSame) member.cluster = { clusterId, objects, trustDomain };
      return member.cluster;
    });
  }

  problems(): readonly ObjectProblem[] {
    return this.#members().flatMap(([, { objects }]) => objects.collection().problems);
  }

  apiOf(clusterId: string): KubernetesApi | undefined {
    return this.#members().find(([id]) => id === clusterId)?.[1].api;
  }

  /** What a cluster has; undefined for one that is not of the mesh, or was not read yet. */
  objectsOf(clusterId: string): readonly ConfigObject[] | undefined {
    const member = this.#members().find(([id]) => id === clusterId)?.[1];
    return member?.objects.isRead === true ? member.objects.collection().objects : undefined;
  }

  async stop(): Promise<void> {
    const all = this.#members();
    for (const [, { stop }] of all) stop.abort();
    await Promise.all(all.map(([, { running }]) => running));
  }

  #members(): readonly (readonly [string, Member])[] {
    return [...this.#bySecret.values()].flatMap((members) => [...members]).sort(([a], [b]) => (a < b ? -1 : 1));
  }

  #isOurs({ metadata }: RawObject): boolean {
    return metadata.namespace === this.#options.meshConfigMap.namespace && metadata.labels?.[CLUSTER_LABEL] === "true";
  }

  #leave(secret: string): void {
    this.#options.events?.secret("delete");
    this.#takeMembers(secret, {});
    this.#bySecret.delete(secret);
  }

  #takeMembers(secret: string, data: Readonly<Record<string, unknown>>): void {
    const members = this.#bySecret.get(secret) ?? new Map<string, Member>();
    this.#bySecret.set(secret, members);
    for (const [id, { stop }] of members) {
      if (Object.hasOwn(data, id)) continue;
      stop.abort();
      members.delete(id);
      this.#options.log.info("a cluster has left the mesh", { cluster: id, secret });
    }
    for (const [id, encoded] of Object.entries(data)) {
      if (typeof encoded === "string") this.#join(members, id, { secret, encoded });
    }
    this.#options.onChange();
  }

  #join(members: Map<string, Member>, id: string, { secret, encoded }: { secret: string; encoded: string }): void {
    const { log } = this.#options;
    const digest = createHash("sha256").update(encoded).digest("hex");
    const before = members.get(id);
    if (before?.digest === digest) return;
    const where = { cluster: id, secret };
    const obstacle = before === undefined ? this.#obstacleTo(id) : undefined;
    if (obstacle !== undefined) {
      log.warn(obstacle, where);
      return;
    }
    try {
      const config = Buffer.from(encoded, "base64").toString();
      const api = new KubernetesApi(
        untrustedKubeConfig(config, `of Secret ${secret}, cluster "${id}"`, this.#options.rules),
      );
      before?.stop.abort();
      members.set(id, this.#start(api, id, digest));
      log.info("a cluster has joined the mesh", { ...where, server: api.access.server });
    } catch (problem) {
      log.error("a cluster cannot join the mesh", { ...where, reason: errorText(problem) });
    }
  }

  #obstacleTo(id: string): string | undefined {
    if (id === this.#options.clusterId) return "a Secret names our own cluster, which it cannot replace";
    const isKnown = this.#members().some(([known]) => known === id);
    return isKnown ? "another Secret has that cluster already" : undefined;
  }

  #start(api: KubernetesApi, id: string, digest: string): Member {
    const { meshConfigMap, revision, onChange, events, signal, rules } = this.#options;
    const stop = new AbortController();
    const mesh = new RemoteMesh(id);
    const types = limited(remoteTypes(meshConfigMap, rules?.withEntries ?? true), this.#options.limits ?? {});
    const objects = new FollowedObjects({ api, types, revision, cluster: id, onChange, events, observer: mesh });
    const both = AbortSignal.any([signal, stop.signal]);
    const running = objects.run(both).finally(() => api.close());
    const member: Member = {
      api,
      digest,
      objects,
      mesh,
      stop,
      running,
      isAwaited: true,
      cluster: { clusterId: id, objects: [], trustDomain: undefined },
    };
    const { patienceMs = PATIENCE_MS } = rules ?? {};
    if (patienceMs === 0) return member;
    const timer = setTimeout(() => {
      member.isAwaited = false;
      onChange();
    }, patienceMs);
    both.addEventListener("abort", () => clearTimeout(timer));
    return member;
  }
}

/** What the mesh config of a further cluster says of the cluster itself. */
class RemoteMesh implements RawObserver {
  readonly #clusterId: string;
  #file = NO_MESH_FILE;
  #isRead = false;

  constructor(clusterId: string) {
    this.#clusterId = clusterId;
  }

  /** Of its workloads; undefined while that may not be read. */
  get trustDomain(): string | undefined {
    return this.#isRead ? this.#file.mesh.trustDomain : undefined;
  }

  put(kind: string, { data }: RawObject): void {
    if (kind !== "ConfigMap") return;
    const text = isRecord(data) ? data.mesh : undefined;
    this.#file = readMeshFile(this.#clusterId, typeof text === "string" ? text : "", this.#file);
  }

  /** What it said last holds. */
  remove(): void {}

  replaced(kind: string, objects: readonly RawObject[]): void {
    if (kind !== "ConfigMap") return;
    for (const object of objects) this.put(kind, object);
    this.#isRead = true;
  }
}

function hasSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a === b || (a.length === b.length && a.every((item, i) => item === b[i]));
}
