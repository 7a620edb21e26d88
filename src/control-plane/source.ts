/** Where the mesh comes from: files, or the API server of Kubernetes. */

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Env } from "#lib/env/env-table.ts";
import { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { type ClusterAccess, inClusterAccess, SERVICE_ACCOUNT_FOLDER } from "#lib/kubernetes/cluster-access.ts";
import { readKubeConfig } from "#lib/kubernetes/kube-config.ts";
import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type FileSource, fileSource } from "#sources/file/file-source.ts";
import type { ClusterEvents } from "#sources/kubernetes/followed-objects.ts";
import { type KubernetesSource, kubernetesSource } from "#sources/kubernetes/kubernetes-source.ts";
import type { ClusterStatus } from "#sources/kubernetes/remote-clusters.ts";
import { readApart } from "./read-apart.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

export type MeshSource = FileSource | KubernetesSource;

export interface SourceInput {
  readonly config: DiscoveryConfig;
  readonly cluster: KubernetesApi | undefined;
  /** Counts what API servers tell. */
  readonly events: ClusterEvents;
  readonly log: Logger;
}

/** The source that the flags ask for: an API server if there is one, with files in the place of its configuration or not. */
export function sourceOf({ config, cluster, events, log }: SourceInput): MeshSource {
  const { folders, features, revision, namespace, kubernetes } = config;
  const meshFile = meshConfigFile(config);
  if (cluster === undefined) return filesOf(config, meshFile, log);
  const own = revision || "default";
  const [ofConfiguration, ofMesh] = [folders.length > 0, meshFile !== undefined];
  const files = ofConfiguration || ofMesh ? filesOf(config, meshFile, log) : undefined;
  return kubernetesSource({
    api: cluster,
    features,
    events,
    log: log.scope("kube"),
    revision,
    meshConfigMap: {
      namespace,
      name: own === "default" ? "istio" : `istio-${own}`,
      sharedName: kubernetes?.sharedMeshConfig,
    },
    limits: kubernetes?.limits,
    files: files && { source: files, ofConfiguration, ofMesh },
    remotes: config.remotes,
  });
}

function filesOf(
  { folders, networksFile, features, revision }: DiscoveryConfig,
  meshConfigFile: string | undefined,
  log: Logger,
): FileSource {
  return fileSource({
    folders,
    meshConfigFile,
    networksFile: networksFile || undefined,
    features,
    revision: revision || undefined,
    log: log.scope("file"),
    readApart,
  });
}

/** The API server of a further cluster of the mesh. */
export function apiOfCluster(source: MeshSource, clusterId: string): KubernetesApi | undefined {
  return "apiOf" in source ? source.apiOf(clusterId) : undefined;
}

/** Further clusters of the mesh. */
export function remoteClusters(source: MeshSource): readonly ClusterStatus[] {
  return "remoteClusters" in source ? source.remoteClusters() : [];
}

/** What a further cluster of the mesh has, if it was read. */
export function objectsOfCluster(source: MeshSource, clusterId: string): readonly ConfigObject[] | undefined {
  return "objectsOf" in source ? source.objectsOf(clusterId) : undefined;
}

/** The API servers of all further clusters, by id. */
export function apisOfClusters(source: MeshSource): ReadonlyMap<string, KubernetesApi> {
  if (!("remoteClusters" in source)) return new Map();
  const apis = source.remoteClusters().flatMap(({ id }) => {
    const api = source.apiOf(id);
    return api === undefined ? [] : [[id, api] as const];
  });
  return new Map(apis);
}

/** Without the flag, the file in the usual place is taken if it is there; a named file is expected to come. */
function meshConfigFile({ meshConfig: { file, isGiven } }: DiscoveryConfig): string | undefined {
  return file !== "" && (isGiven || existsSync(file)) ? file : undefined;
}

/**
 * The cluster that `--registries` asks for: by kubeconfig, else the one that this pod runs in. With `--configDir` there may be
 * none.
 */
export async function clusterOf(
  { kubernetes, folders }: DiscoveryConfig,
  env: Env,
): Promise<KubernetesApi | undefined> {
  if (kubernetes === undefined) return undefined;
  const access = await accessOf(kubernetes.kubeConfig, env);
  if (access !== undefined) return new KubernetesApi(access);
  if (folders.length > 0) return undefined;
  throw new MeshError(
    "KUBE_CONFIG_INVALID",
    "there is no Kubernetes: neither --kubeconfig, KUBECONFIG, ~/.kube/config nor the account of a pod; --registries= does without",
  );
}

async function accessOf(flag: string, env: Env): Promise<ClusterAccess | undefined> {
  const usual = join(env.HOME ?? "/", ".kube/config");
  // Files of the variable may be missing, as for kubectl: a chart sets it for a Secret that is there in few installations.
  const named =
    flag === "" ? (env.KUBECONFIG ?? "").split(":").filter((file) => file !== "" && existsSync(file)) : [flag];
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (named.length > 0) return readKubeConfig({ files: named, environment: env });
  if (host !== undefined)
    return inClusterAccess({ host, port, folder: SERVICE_ACCOUNT_FOLDER, readText, environment: env });
  return existsSync(usual) ? readKubeConfig({ files: [usual], environment: env }) : undefined;
}

function readText(file: string): Promise<string> {
  return readFile(file, "utf8");
}
