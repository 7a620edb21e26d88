/** The registration of workloads, put together. */
import { kubernetesEntries } from "#controllers/registration/kubernetes-entries.ts";
import { WorkloadRegistration } from "#controllers/registration/workload-registration.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Source, WorkloadEntries } from "#model/ports.ts";
import { countedEntries, type RegistrationCounter } from "./metrics/counted-entries.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

export interface RegistrationInput {
  readonly config: DiscoveryConfig;
  readonly source: Source & WorkloadEntries;
  /** Where entries are written; without one they live as long as the source. */
  readonly cluster: KubernetesApi | undefined;
  readonly count: (name: RegistrationCounter) => void;
  readonly log: Logger;
}

/** Registers workloads that ask for it; undefined where that is turned off. */
export function registrationOf({
  config,
  source,
  cluster,
  count,
  log,
}: RegistrationInput): WorkloadRegistration | undefined {
  if (config.registration === undefined) return undefined;
  return new WorkloadRegistration({
    ...config.registration,
    source,
    entries: countedEntries(cluster === undefined ? source : kubernetesEntries(cluster), count),
    onMissingGroup: () => count("auto_registration_errors_total"),
    instance: config.podName || "istiod",
    log: log.scope("wle"),
    now: Date.now,
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms);
      return () => clearTimeout(timer);
    },
  });
}
