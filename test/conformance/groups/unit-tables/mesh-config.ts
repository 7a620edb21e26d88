/** Tables about the mesh config and the proxy configuration in it. */
import { DEFAULT_MESH_CONFIG, type MeshConfig, meshConfigOf } from "#config/mesh/mesh-config.ts";
import { overlayProxyConfig, readProxyConfigText } from "#config/proxy-config/proxy-config.ts";
import { readDocument } from "#lib/yaml/read.ts";
import { compareJson } from "../../compare.ts";
import { byRow, unitTables } from "../../unit-tables.ts";

/** What the rows of `ApplyMeshConfig` are laid over; the data leaves it out, since it is the same in all. */
const BASE = `
defaultProviders:
  metrics: [stackdriver]
extensionProviders:
- name: stackdriver
  stackdriver:
    maxNumberOfAttributes: 3
trustDomainAliases: [default, both]
`;

const NOTHING: MeshConfig = {
  ...DEFAULT_MESH_CONFIG,
  defaultProviders: {},
  extensionProviders: [],
  trustDomainAliases: [],
};

function providersOf(mesh: MeshConfig | undefined) {
  return [mesh?.defaultProviders, mesh?.extensionProviders, mesh?.trustDomainAliases];
}

export const meshConfigTables = unitTables("unit tables: mesh config", ["pkg/config/mesh"], {
  "ApplyMeshConfig(yaml, ApplyMeshConfig(default))": byRow<{ in: string; out: string }>(({ in: given, out }) => {
    const read = (text: string, base: MeshConfig = NOTHING) => meshConfigOf(readDocument(text).value, base).value;
    return compareJson(providersOf(read(given, read(BASE))), providersOf(read(out)));
  }),
  "MergeProxyConfig(base, overlay)": byRow<{ base: string; overlay: string; result: string }>(async (row) => {
    const ignore = () => undefined;
    const read = async (text: string, below = {}) =>
      overlayProxyConfig(below, await readProxyConfigText(text, ignore), ignore);
    return compareJson(await read(row.overlay, await read(row.base)), await read(row.result));
  }),
});
