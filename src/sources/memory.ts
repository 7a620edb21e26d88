/** A source that is told its files instead of reading them: for tests, and for configuration that exists as text only. */
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import type { KeySets } from "#model/key-set.ts";
import type { Source, WorkloadEntries } from "#model/ports.ts";
import type { GatewayAddresses } from "#model/service/network-gateway.ts";
import { readConfigFile } from "./config-file.ts";
import { ObjectTable } from "./object-table.ts";
import { SnapshotStore } from "./snapshot-store.ts";

export interface MemorySourceOptions {
  /** YAML text by file name. */
  readonly files?: Readonly<Record<string, string>>;
  readonly mesh?: MeshConfig;
  readonly features?: Features;
  readonly revision?: string;
}

export interface MemorySource extends Source, WorkloadEntries {
  /** Changes files, all in one snapshot; undefined removes a file. */
  write(files: Readonly<Record<string, string | undefined>>): void;
  setMesh(mesh: MeshConfig): void;
  /** Replaces the fetched keys of token issuers. */
  takeKeySets(keySets: KeySets): void;
  /** Replaces what names of gateways between networks were resolved to. */
  takeGatewayAddresses(addresses: GatewayAddresses): void;
}

/** A source over the given texts. */
export function memorySource(options: MemorySourceOptions = {}): MemorySource {
  const { features = DEFAULT_FEATURES, revision = "default" } = options;
  const store = new SnapshotStore(features);
  const table = new ObjectTable(revision);
  let mesh = options.mesh ?? DEFAULT_MESH_CONFIG;
  const write: MemorySource["write"] = (changes) => {
    for (const [file, text] of Object.entries(changes)) {
      if (text === undefined) table.delete(file);
      else table.set(readConfigFile({ file, text, previous: table.get(file) }));
    }
    store.publish(table.collection(), mesh);
  };
  write(options.files ?? {});
  return {
    current: () => store.current(),
    objects: () => store.objects(),
    problems: () => store.problems(),
    subscribe: (onSnapshot) => store.subscribe(onSnapshot),
    takeKeySets: (keySets) => store.takeKeySets(keySets),
    takeGatewayAddresses: (addresses) => store.takeGatewayAddresses(addresses),
    put: (entry) => store.put(entry),
    remove: (entry) => store.remove(entry),
    write,
    setMesh: (next) => {
      mesh = next;
      store.publish(table.collection(), mesh);
    },
  };
}
