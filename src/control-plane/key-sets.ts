/** The part that fetches keys of token issuers, with its settings. */
import { readFileSync } from "node:fs";
import { rootCertificates } from "node:tls";
import type { Logger } from "#lib/log/log.ts";
import { type FetchRules, fetchKeySet } from "#sources/jwks/fetch-keys.ts";
import { type KeySetSource, type KeySetTaker, keySetSource } from "#sources/jwks/key-set-source.ts";
import { wantedKeySets } from "#translate/policies/request-authentications.ts";
import type { ControlPlaneMetrics } from "./metrics/metrics.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

export interface KeySetInput {
  readonly config: DiscoveryConfig;
  readonly taker: KeySetTaker;
  readonly metrics: ControlPlaneMetrics;
  readonly log: Logger;
}

/** What fetches keys as the settings say. */
export function keySetsOf({ config, taker, metrics, log }: KeySetInput): KeySetSource {
  return keySetSource({
    taker,
    wanted: wantedKeySets,
    fetch: (address, signal) => fetchKeySet(address, fetchRules(config), signal),
    refreshMs: config.keys.refreshMs,
    log: log.scope("jwks"),
    count: (name) => metrics.count(name),
  });
}

/** What holds for everything that configuration lets the control plane fetch. */
export function fetchRules({ keys, features }: Pick<DiscoveryConfig, "keys" | "features">): FetchRules {
  return { ...keys, clusterDomain: features.domain, extraRoots: extraRoots(keys.extraRootsFile) };
}

/** Naming roots replaces the usual ones, so these come along. */
function extraRoots(file: string): readonly string[] {
  try {
    return [...rootCertificates, readFileSync(file, "utf8")];
  } catch {
    // Usually there is no such file; who put one there that cannot be read sees that servers are not trusted.
    return [];
  }
}
