/** Who wins where several claim the same. */
import { compareText } from "#lib/text/compare-text.ts";
import type { ConfigObject, Metadata } from "../schema/config-object.ts";

/** Older ones first; those of one moment by name, then namespace. */
export function byAge(
  a: Pick<Metadata, "createdAt" | "name" | "namespace">,
  b: Pick<Metadata, "createdAt" | "name" | "namespace">,
): number {
  return a.createdAt - b.createdAt || compareText(a.name, b.name) || compareText(a.namespace, b.namespace);
}

/** The same of objects. */
export function oldestFirst(a: ConfigObject, b: ConfigObject): number {
  return byAge(a.metadata, b.metadata);
}
