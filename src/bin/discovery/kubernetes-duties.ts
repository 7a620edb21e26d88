/** What a control plane does in its cluster beside serving proxies. One replica at a time does it. */
import { hostname } from "node:os";
import { keepAddresses } from "#controllers/allocated-addresses.ts";
import { keepIngressStatus } from "#controllers/ingress-status.ts";
import { kubernetesEntries } from "#controllers/registration/kubernetes-entries.ts";
import { removeLeftovers } from "#controllers/registration/leftover-entries.ts";
import { keepRootConfigMaps, type RootConfigMapsOptions } from "#controllers/root-config-maps.ts";
import { keepWebhookBundles } from "#controllers/webhook-bundles.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import { leadWhenElected } from "#lib/kubernetes/leader-election.ts";
import type { Logger } from "#lib/log.ts";
import type { Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { DiscoveryConfig } from "./config.ts";
import type { StartedCa } from "./security.ts";

export interface Duties {
  readonly cluster: KubernetesApi;
  readonly config: DiscoveryConfig;
  readonly ca: StartedCa;
  readonly source: Source;
  readonly log: Logger;
}

/** Takes part in the election, and does what the leader has to, until the signal aborts. */
export function runDuties(
  { cluster: api, config, ca: { authority, lead: leadCa }, source, log }: Duties,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, podName, revision } = config;
  const identity = podName || `${hostname()}-${process.pid}`;
  const name = revision === "" || revision === "default" ? "istio-leader" : `istio-leader-${revision}`;
  const roots = () => authority.trustBundle();
  const onRoots = (changed: () => void) => authority.onTrustChanged(changed);
  const lead = async (leading: AbortSignal) => {
    const ofRevision = { api, roots, onRoots, revision: revision || "default", log: log.scope("webhooks") };
    const ofNamespaces = { api, roots, onRoots, ...meshNamespaces(source), log: log.scope("roots") };
    await Promise.all([
      leadCa(leading),
      keepRootConfigMaps(ofNamespaces, leading),
      keepWebhookBundles(ofRevision, leading),
      keepIngressStatus({ api, source, namespace, log: log.scope("ingress") }, leading),
      config.registration &&
        removeLeftovers(
          { ...config.registration, source, entries: kubernetesEntries(api), namespace, podName, now: Date.now, log },
          leading,
        ),
      config.features.autoAllocate && keepAddresses({ api, source, log: log.scope("ip-autoallocate") }, leading),
    ]);
  };
  return leadWhenElected({ api, namespace, name, identity, log: log.scope("leader") }, lead, signal);
}

/** Those that `discoverySelectors` let in, as the newest snapshot knows them. */
function meshNamespaces(source: Source): Pick<RootConfigMapsOptions, "isOurs" | "onOurs"> {
  let seen: Snapshot["namespaces"] | undefined;
  let names: ReadonlySet<string> = new Set();
  const isOurs = ({ metadata }: RawObject) => {
    const { namespaces } = source.current();
    if (namespaces !== seen) names = new Set(namespaces.map((namespace) => namespace.metadata.name));
    seen = namespaces;
    return names.has(metadata.name);
  };
  const onOurs = (changed: () => void) =>
    source.subscribe(({ namespaces }) => {
      if (namespaces !== seen) changed();
    });
  return { isOurs, onOurs };
}
