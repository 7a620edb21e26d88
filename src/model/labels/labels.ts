/** Labels of workloads, and selectors of them. */
export type Labels = Readonly<Record<string, string>>;

/** The service that metrics count a workload to. */
export const CANONICAL_NAME = "service.istio.io/canonical-name";
/** The version of it. */
export const CANONICAL_REVISION = "service.istio.io/canonical-revision";

/** What metrics call the workload of a pod or an entry. */
export const WORKLOAD_NAME = "service.istio.io/workload-name";
/** `istio` says that a workload takes mutual TLS. */
export const TLS_MODE = "security.istio.io/tlsMode";

/** Service and revision that metrics count a workload of these labels to; `name` is what it is called otherwise. */
export function canonicalService(labels: Labels, name: string): readonly [service: string, revision: string] {
  const first = (...names: string[]) => names.map((key) => labels[key]).find((value) => value !== undefined);
  return [
    first(CANONICAL_NAME, "app.kubernetes.io/name", "app") ?? name,
    first(CANONICAL_REVISION, "app.kubernetes.io/version", "version") ?? "latest",
  ];
}

/** Whether labels have all that is wanted; a selector that wants nothing fits everything. */
export function hasLabels(labels: Labels, wanted: Labels = {}): boolean {
  return Object.entries(wanted).every(([label, value]) => labels[label] === value);
}
