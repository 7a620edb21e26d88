/** The order in which conflicting objects win. */

import type { ConfigObject } from "#config/config-object.ts";
import { compareText } from "#lib/compare-text.ts";

/** Older objects first; objects of one moment by name, then namespace. */
export function oldestFirst(a: ConfigObject, b: ConfigObject): number {
  return (
    a.metadata.createdAt - b.metadata.createdAt ||
    compareText(a.metadata.name, b.metadata.name) ||
    compareText(a.metadata.namespace, b.metadata.namespace)
  );
}
