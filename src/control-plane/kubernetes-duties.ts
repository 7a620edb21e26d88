/** What a control plane does in its cluster beside serving proxies. One replica at a time does it. */
import { hostname } from "node:os";
import { keepAddresses } from "#controllers/allocated-addresses.ts";
import { keepIngressStatus } from "#controllers/ingress-status.ts";
import { leadClusters } from "#controllers/led-clusters.ts";
import { keepNamespaceMaps, type NamespaceMapsOptions, REVOCATION_MAP, ROOT_MAP } from "#controllers/namespace-maps.ts";
import { kubernetesEntries } from "#controllers/registration/kubernetes-entries.ts";
import { removeLeftovers } from "#controllers/registration/leftover-entries.ts";
import { Analysis } from "#controllers/status/analysis.ts";
import { localDistribution } from "#controllers/status/distribution.ts";
import { keepObjectStatus } from "#controllers/status/object-status.ts";
import { type ReportOptions, Reports, reportDistribution } from "#controllers/status/reports.ts";
import { keepWebhookBundles, type WebhookBundlesOptions } from "#controllers/webhook-bundles.ts";
import { isDiscovered } from "#convert/clusters/discovered.ts";
import { autoRanges } from "#convert/services/addresses.ts";
import type { Conflict } from "#explain/conflicts/conflict.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import { leadWhenElected } from "#lib/kubernetes/leader-election.ts";
import type { Logger } from "#lib/log/log.ts";
import type { PublishedText } from "#lib/published-text.ts";
import type { ConnectedProxy, Source } from "#model/ports.ts";
import type { PushHistory } from "#model/push-record.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { FOLLOWED_TYPES } from "#sources/kubernetes/followed-types.ts";
import type { StartedCa } from "./security.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

export interface Duties {
  readonly cluster: KubernetesApi;
  readonly config: DiscoveryConfig;
  /** Undefined: somebody else signs, and gives out the roots. */
  readonly ca: StartedCa | undefined;
  /** By what our own certificate is believed; undefined where we have none. */
  readonly roots: PublishedText | undefined;
  readonly source: Source;
  /** What was sent to the proxies that are connected. */
  readonly pushes: PushHistory;
  readonly connections: () => readonly ConnectedProxy[];
  readonly conflicts: () => readonly Conflict[];
  /** API servers of further clusters, by id. */
  readonly clusters: () => ReadonlyMap<string, KubernetesApi>;
  readonly count: NonNullable<WebhookBundlesOptions["count"]>;
  readonly log: Logger;
}

/** Takes part in the election, and does what the leader has to, until the signal aborts. */
export async function runDuties(given: Duties, signal: AbortSignal): Promise<void> {
  const { cluster: api, config, log } = given;
  const { namespace, podName, revision } = config;
  const identity = podName || `${hostname()}-${process.pid}`;
  const duties = { ...given, identity };
  const name = revision === "" || revision === "default" ? "istio-leader" : `istio-leader-${revision}`;
  const election = { api, namespace, name, identity, log: log.scope("leader") };
  const isAlone = config.kubernetes?.elects === false;
  await Promise.all([
    isAlone ? lead(duties, signal) : leadWhenElected(election, (leading) => lead(duties, leading), signal),
    config.writesStatus && reportDistribution(reportOf(duties), signal),
  ]);
}

/** With the name of this replica. */
interface ReplicaDuties extends Duties {
  readonly identity: string;
}

async function lead(duties: ReplicaDuties, signal: AbortSignal): Promise<void> {
  const { cluster: api, config, ca, roots, source, count, log } = duties;
  const { namespace, podName, revision, registration, features } = config;
  const ofNamespaces = { api, ...meshNamespaces(source), log: log.scope("namespaces") };
  const { patches } = config.kubernetes ?? {};
  const bundles = {
    api,
    namespace,
    revision: revision || "default",
    ...(patches && { only: patches }),
    count,
    log: log.scope("webhooks"),
  };
  const ofEntries = {
    source,
    entries: kubernetesEntries(api),
    namespace,
    podName,
    now: Date.now,
    log: log.scope("wle"),
  };
  await Promise.all([
    ca?.lead(signal),
    keepMaps(duties, ofNamespaces, signal),
    roots && keepWebhookBundles({ ...bundles, roots: roots.text, onRoots: roots.onText }, signal),
    keepIngressStatus({ api, source, namespace: features.ingressNamespace, log: log.scope("ingress") }, signal),
    registration && removeLeftovers({ ...registration, ...ofEntries }, signal),
    keepStatus(duties, signal),
    config.leadsClusters && keepClusters(duties, signal),
    features.autoAllocate &&
      keepAddresses({ api, source, ranges: autoRanges(features), log: log.scope("ip-autoallocate") }, signal),
  ]);
}

/** The ConfigMaps that every namespace of a cluster has: by what the mesh is trusted, and what of it no longer is. */
async function keepMaps(
  { config, ca, roots }: Duties,
  maps: Omit<NamespaceMapsOptions, "map" | keyof PublishedText>,
  signal: AbortSignal,
): Promise<void> {
  const { rootMap = ROOT_MAP.name, revocationMap = REVOCATION_MAP.name, limits } = config.kubernetes ?? {};
  const common = { ...maps, only: limits?.namespace };
  await Promise.all([
    ca && roots && keepNamespaceMaps({ ...common, ...roots, map: { ...ROOT_MAP, name: rootMap } }, signal),
    ca?.revocations &&
      keepNamespaceMaps({ ...common, ...ca.revocations, map: { ...REVOCATION_MAP, name: revocationMap } }, signal),
  ]);
}

/** Roots and webhooks in further clusters that name this control plane. */
async function keepClusters(duties: ReplicaDuties, signal: AbortSignal): Promise<void> {
  const { config, roots, source, clusters } = duties;
  const { namespace, features, revision } = config;
  const log = duties.log.scope("clusters");
  const onMesh = (changed: () => void) => source.subscribe(changed);
  const isOurs = ({ metadata: { name, labels = {} } }: RawObject) =>
    isDiscovered({ name, labels }, source.current().mesh);
  const lead = async (api: KubernetesApi, _id: string, leading: AbortSignal) => {
    const only = { injection: config.kubernetes?.patches?.injection !== false, validation: false };
    const bundles = { api, namespace, revision: revision || "default", only, log };
    await Promise.all([
      keepMaps(duties, { api, isOurs, onOurs: onMesh, log }, leading),
      roots && keepWebhookBundles({ ...bundles, roots: roots.text, onRoots: roots.onText }, leading),
    ]);
  };
  await leadClusters({ clusters, onClusters: onMesh, clusterId: features.clusterId, namespace, lead, log }, signal);
}

/** Conditions and messages of analysis, as far as they are asked for. */
async function keepStatus(duties: ReplicaDuties, signal: AbortSignal): Promise<void> {
  const { cluster: api, config, source, conflicts, identity: instance } = duties;
  const { namespace, writesStatus, analysisMs } = config;
  const log = duties.log.scope("status");
  const reports = writesStatus === true ? new Reports({ api, source, namespace, instance, log }) : undefined;
  const analysis = analysisMs === undefined ? undefined : new Analysis({ source, intervalMs: analysisMs });
  if (reports === undefined && analysis === undefined) return;
  const status = {
    api,
    source,
    types: CUSTOM_TYPES,
    conflicts,
    distribution: reports && (() => reports.joined()),
    findings: analysis && (() => analysis.findings),
    now: Date.now,
    log,
  };
  await Promise.all([reports?.follow(signal), analysis?.run(signal), keepObjectStatus(status, signal)]);
}

const CUSTOM_TYPES = FOLLOWED_TYPES.filter(({ isCustom }) => isCustom);

/** What this replica tells the leader. */
function reportOf({
  cluster: api,
  config,
  pushes,
  connections,
  log,
  identity: instance,
}: ReplicaDuties): ReportOptions {
  const local = () => localDistribution(pushes, new Set(connections().map(({ nodeId }) => nodeId)));
  return { api, namespace: config.namespace, instance, local, log: log.scope("status") };
}

/** Those that `discoverySelectors` let in, as the newest snapshot knows them. */
function meshNamespaces(source: Source): Pick<NamespaceMapsOptions, "isOurs" | "onOurs"> {
  let seen: Snapshot["namespaces"] | undefined;
  let names: ReadonlySet<string> = new Set();
  const isOurs = ({ metadata }: RawObject) => {
    const { namespaces } = source.current();
    if (namespaces !== seen) names = new Set(namespaces.map((namespace) => namespace.metadata.name));
    seen = namespaces;
    return names.has(metadata.name);
  };
  // Each who listens is told: what another has looked at meanwhile says nothing about him.
  const onOurs = (changed: () => void) => {
    let told = source.current().namespaces;
    return source.subscribe(({ namespaces }) => {
      if (namespaces === told) return;
      told = namespaces;
      changed();
    });
  };
  return { isOurs, onOurs };
}
