/** User and group of the proxy. OpenShift gives each namespace a range of them in annotations. */

/** What Istio's proxies run as everywhere else. */
const DEFAULT_ID = 1337;
const UIDS = "openshift.io/sa.scc.uid-range";
const GROUPS = "openshift.io/sa.scc.supplemental-groups";

/** The last user of the namespace's range and the last group of its first range. */
export function proxyIds(annotations: Readonly<Record<string, string>> = {}): {
  readonly uid: number;
  readonly gid: number;
} {
  const uids = annotations[UIDS];
  const groups = annotations[GROUPS] ?? uids;
  return { uid: lastOf(uids) ?? DEFAULT_ID, gid: lastOf(groups?.split(",")[0]) ?? DEFAULT_ID };
}

/** The end of `START/SIZE` or `START-END`. */
function lastOf(range = ""): number | undefined {
  const match = /^(\d+)([/-])(\d+)/.exec(range.trim());
  if (match === null) return undefined;
  const [, start, form, other] = match;
  return form === "/" ? Number(start) + Number(other) - 1 : Number(other);
}
