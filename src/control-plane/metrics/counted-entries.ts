import { CONNECTED_AT, DISCONNECTED_AT } from "#config/terms/registration-annotations.ts";
import type { MetricDefinition } from "#lib/metrics/metrics.ts";
import type { WorkloadEntries } from "#model/ports.ts";

/** What becomes of workloads that register themselves, under Istio's names. */
export const REGISTRATION_COUNTERS = {
  auto_registration_success_total: { type: "counter", help: "Workloads that registered themselves" },
  auto_registration_updates_total: { type: "counter", help: "Workloads that came back to their entry" },
  auto_registration_unregister_total: { type: "counter", help: "Workloads that went away" },
  auto_registration_deletes_total: { type: "counter", help: "Entries of workloads that did not come back in time" },
  auto_registration_errors_total: { type: "counter", help: "Entries that could not be written, or had no group" },
} as const satisfies Record<string, MetricDefinition>;

export type RegistrationCounter = keyof typeof REGISTRATION_COUNTERS;

/** Counts what is written. Only when a workload comes or goes: changes of its health are no registrations. */
export function countedEntries(entries: WorkloadEntries, count: (name: RegistrationCounter) => void): WorkloadEntries {
  const counted = async (write: Promise<void>, name: RegistrationCounter | undefined) => {
    try {
      await write;
    } catch (error) {
      count("auto_registration_errors_total");
      throw error;
    }
    if (name !== undefined) count(name);
  };
  return {
    put: (entry, before) => counted(entries.put(entry, before), counterOf(entry, before)),
    remove: (entry) => counted(entries.remove(entry), "auto_registration_deletes_total"),
  };
}

type Entry = Parameters<WorkloadEntries["put"]>[0];

function counterOf(entry: Entry, before: Entry | undefined): RegistrationCounter | undefined {
  if (before === undefined) return "auto_registration_success_total";
  const isNew = (name: string) => {
    const at = entry.metadata.annotations[name];
    return at !== undefined && at !== before.metadata.annotations[name];
  };
  if (isNew(DISCONNECTED_AT)) return "auto_registration_unregister_total";
  return isNew(CONNECTED_AT) ? "auto_registration_updates_total" : undefined;
}
