import { hostForms, type LookupScope } from "./lookup-table.ts";
import { readNameTable } from "./name-table.ts";

/** The name table for people, as `/debug/ndsz` shows it: with the short names that follow from it. */
export function nameTableJson(nameTable: Uint8Array, scope: LookupScope): string {
  const names = readNameTable(nameTable);
  const table: Record<string, object> = {};
  for (const [host, { ips, registry, shortname, namespace, altHosts }] of names) {
    table[host] = {
      ips,
      registry,
      ...(shortname === "" ? {} : { shortname }),
      ...(namespace === "" ? {} : { namespace }),
      ...(altHosts.length === 0 ? {} : { altHosts }),
    };
  }
  for (const [host, info] of names) {
    for (const form of hostForms(host, info, scope)) table[form] ??= { ips: info.ips, registry: "Kubernetes" };
  }
  // As in all JSON of protobuf, what is empty is not there.
  if (names.size === 0) return "{}";
  return JSON.stringify({ table: Object.fromEntries(Object.entries(table).sort(([a], [b]) => (a < b ? -1 : 1))) });
}
