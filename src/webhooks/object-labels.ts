/** Labels of metrics about an object, as its review names it. */
import { standingOf } from "#config/kinds/kinds.ts";
import type { AdmissionRequest } from "./admission-review.ts";

/** Anybody can send a review of any kind: only kinds that exist become labels, since metrics keep every label for ever. */
export function objectLabels({ kind: { group, version, kind }, resource }: AdmissionRequest): {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
} {
  const standing = standingOf(`${group}/${version}`, kind);
  const isKnown = standing !== "unknown" && standing !== "not-ours" && resource === pluralOf(kind);
  return isKnown ? { group, version, resource } : UNKNOWN;
}

const UNKNOWN = { group: "unknown", version: "unknown", resource: "unknown" };

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}
