/** The networks of the mesh as a file holds them. */

import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { type MeshNetworks, meshNetworksOf } from "#config/mesh/mesh-networks.ts";
import { parseField } from "#config/schema/field-path.ts";
import { lineOfPath } from "#lib/yaml/places.ts";
import { readDocument } from "#lib/yaml/read.ts";
import type { ObjectProblem } from "#model/ports.ts";
import type { ReadText } from "./read-text.ts";

export interface NetworksFile {
  readonly text: string | undefined;
  /** As they last were without errors. */
  readonly networks: MeshNetworks;
  readonly problems: readonly ObjectProblem[];
}

/** A mesh of one network. */
export const NO_NETWORKS_FILE: NetworksFile = { text: undefined, networks: {}, problems: [] };

/** Reads the file over what it said before. Most meshes have none, which is no problem. */
export function readNetworksFile(
  file: string,
  { text, failure }: ReadText,
  { networks: before }: NetworksFile,
): NetworksFile {
  const failed = (message: string, line = 1): NetworksFile => ({
    text,
    networks: before,
    problems: [{ object: OBJECT, field: "", message, severity: "error", origin: { file, line } }],
  });
  if (failure !== undefined) return failed(failure);
  if (text === undefined) return { text, networks: before, problems: [] };
  const { value: raw, error } = readDocument(text);
  if (error !== undefined) return failed(error.message, error.line);
  const { value, problems } = meshNetworksOf(raw);
  return {
    text,
    networks: value ?? before,
    problems: problems.map((problem) => ({
      ...problem,
      object: OBJECT,
      origin: { file, line: lineOfPath(text, parseField(problem.field)) },
    })),
  };
}

const OBJECT = "MeshNetworks";

/** The mesh config with the networks beside it. */
export function withNetworks(mesh: MeshConfig, { networks }: NetworksFile): MeshConfig {
  return Object.keys(networks).length === 0 ? mesh : { ...mesh, networks };
}
