import { readMapEntry, readMessage, readString } from "#lib/wire/read.ts";

/** What is known of one host. */
export interface NameInfo {
  readonly ips: readonly string[];
  /** `Kubernetes` or `External`: only hosts of Kubernetes have short names. */
  readonly registry: string;
  readonly shortname: string;
  readonly namespace: string;
  readonly altHosts: readonly string[];
}

/** Hosts by name, as the control plane sends them (`istio.networking.nds.v1.NameTable`). */
export type NameTable = ReadonlyMap<string, NameInfo>;

/** Throws when the bytes are no name table. */
export function readNameTable(bytes: Uint8Array): NameTable {
  const table = new Map<string, NameInfo>();
  readMessage(bytes, {
    bytes: {
      1: (entry) => {
        const { key, value } = readMapEntry(entry);
        table.set(key, readNameInfo(value));
      },
    },
  });
  return table;
}

function readNameInfo(bytes: Uint8Array): NameInfo {
  const info = { ips: [] as string[], registry: "", shortname: "", namespace: "", altHosts: [] as string[] };
  readMessage(bytes, {
    bytes: {
      1: (value) => info.ips.push(readString(value)),
      2: (value) => {
        info.registry = readString(value);
      },
      3: (value) => {
        info.shortname = readString(value);
      },
      4: (value) => {
        info.namespace = readString(value);
      },
      5: (value) => info.altHosts.push(readString(value)),
    },
  });
  return info;
}
