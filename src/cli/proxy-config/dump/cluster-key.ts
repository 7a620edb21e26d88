/** What the name of a cluster says, whatever else may be called so. */

import { compareText } from "#lib/text/compare-text.ts";

/** `outbound|9080|v1|reviews.default.svc.cluster.local`, or the same with `_.` between its parts. */
export interface ClusterKey {
  readonly direction: string;
  readonly port: number;
  readonly subset: string;
  readonly host: string;
}

/** The parts of a name; a name that has none is a host. */
export function clusterKey(name: string): ClusterKey {
  if (!hasParts(name)) return { direction: "", port: 0, subset: "", host: name };
  const [direction = "", port = "", subset = "", ...host] = name.split(name.includes("|") ? "|" : "_.");
  return { direction, port: /^\d+$/.test(port) ? Number(port) : 0, subset, host: host.join("|") };
}

/** Whether the name has all four parts. */
export function hasParts(name: string): boolean {
  return name.split("|").length > 3;
}

/** By host, subset, port and direction. */
export function byClusterKey(one: string, other: string): number {
  const [a, b] = [clusterKey(one), clusterKey(other)];
  return (
    compareText(a.host, b.host) ||
    compareText(a.subset, b.subset) ||
    a.port - b.port ||
    compareText(a.direction, b.direction)
  );
}
