/** The order in which conflicting objects win. */
import type { ConfigObject } from "#config/config-object.ts";

/** Older objects first; objects of one moment by name, then namespace. */
export function oldestFirst(a: ConfigObject, b: ConfigObject): number {
  return (
    a.metadata.createdAt - b.metadata.createdAt ||
    compareText(a.metadata.name, b.metadata.name) ||
    compareText(a.metadata.namespace, b.metadata.namespace)
  );
}

/** By code unit, unlike `localeCompare`, so that every replica agrees. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
