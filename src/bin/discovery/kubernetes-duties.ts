/** What a control plane does in its cluster beside serving proxies. One replica at a time does it. */
import { hostname } from "node:os";
import type { Authority } from "#ca/authority.ts";
import { keepRootConfigMaps } from "#controllers/root-config-maps.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { leadWhenElected } from "#lib/kubernetes/leader-election.ts";
import type { Logger } from "#lib/log.ts";
import type { DiscoveryConfig } from "./config.ts";

export interface Duties {
  readonly cluster: KubernetesApi;
  readonly config: DiscoveryConfig;
  readonly authority: Authority;
  readonly log: Logger;
}

/** Takes part in the election, and does what the leader has to, until the signal aborts. */
export function runDuties({ cluster: api, config, authority, log }: Duties, signal: AbortSignal): Promise<void> {
  const { namespace, podName, revision } = config;
  const identity = podName || `${hostname()}-${process.pid}`;
  const name = revision === "" || revision === "default" ? "istio-leader" : `istio-leader-${revision}`;
  const lead = (leading: AbortSignal) =>
    keepRootConfigMaps(
      {
        api,
        roots: () => authority.trustBundle(),
        onRoots: (changed) => authority.onTrustChanged(changed),
        isOurs: () => true,
        onOurs: () => () => {},
        log: log.scope("roots"),
      },
      leading,
    );
  return leadWhenElected({ api, namespace, name, identity, log: log.scope("leader") }, lead, signal);
}
