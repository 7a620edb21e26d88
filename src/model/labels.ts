/** Labels of workloads, and selectors of them. */
export type Labels = Readonly<Record<string, string>>;

/** Whether labels have all that is wanted; a selector that wants nothing fits everything. */
export function hasLabels(labels: Labels, wanted: Labels = {}): boolean {
  return Object.entries(wanted).every(([label, value]) => labels[label] === value);
}
