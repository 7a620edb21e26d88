/** The mesh config as ConfigMaps hold it: that of the control plane, over one that several of them may share. */
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import type { ObjectProblem } from "#model/ports.ts";
import { type MeshFile, meshFileOver, missingMeshFile, NO_MESH_FILE, readMeshFile } from "../file/mesh-file.ts";
import { type NetworksFile, NO_NETWORKS_FILE, readNetworksFile, withNetworks } from "../file/networks-file.ts";

/** Where the ConfigMaps are. */
export interface MeshMapPlaces {
  readonly namespace: string;
  /** Its keys `mesh` and `meshNetworks` are the mesh config. */
  readonly name: string;
  /** What the other leaves out is taken from this one, if it is named; but its networks go first, as in Istio. */
  readonly sharedName?: string | undefined;
}

interface Held {
  mesh: MeshFile;
  networks: NetworksFile;
}

/** What is known of them. Needs every ConfigMap of their namespace. */
export class MeshMaps {
  readonly #places: MeshMapPlaces;
  readonly #own: Held = { mesh: NO_MESH_FILE, networks: NO_NETWORKS_FILE };
  readonly #shared: Held = { mesh: NO_MESH_FILE, networks: NO_NETWORKS_FILE };

  constructor(places: MeshMapPlaces) {
    this.#places = places;
  }

  /** What they say together; with the mesh config of a file in place of our own ConfigMap, if it is given. */
  effective(file?: { readonly mesh: MeshFile; readonly networks: NetworksFile }): MeshConfig {
    const own = file ?? this.#own;
    if (this.#places.sharedName === undefined) return withNetworks(own.mesh.mesh, own.networks);
    const networks = this.#shared.networks.text === undefined ? own.networks : this.#shared.networks;
    return withNetworks(meshFileOver(this.#shared.mesh.mesh, own.mesh), networks);
  }

  /** Of both; of the shared one alone where a file stands in for ours. */
  problems(isFile: boolean): readonly ObjectProblem[] {
    const held = isFile ? [this.#shared] : [this.#own, this.#shared];
    return held.flatMap(({ mesh, networks }) => [...mesh.problems, ...networks.problems]);
  }

  put(object: RawObject): void {
    const held = this.#heldOf(object);
    if (held === undefined) return;
    const textOf = (key: string) => {
      const value = isRecord(object.data) ? object.data[key] : undefined;
      return typeof value === "string" ? value : undefined;
    };
    const name = this.#fullName(object.metadata.name);
    const [mesh = "", networks] = [textOf("mesh"), textOf("meshNetworks")];
    if (mesh !== held.mesh.text) held.mesh = readMeshFile(name, mesh, held.mesh);
    if (networks !== held.networks.text)
      held.networks = readNetworksFile(`${name}/meshNetworks`, { text: networks }, held.networks);
  }

  remove(object: RawObject): void {
    const held = this.#heldOf(object);
    if (held !== undefined) held.mesh = missingMeshFile(this.#fullName(object.metadata.name), held.mesh);
  }

  /** All there are. A shared one that is not there says nothing, and nobody has to be told. */
  replace(objects: readonly RawObject[]): void {
    const { name } = this.#places;
    if (!objects.some((object) => this.#heldOf(object) === this.#own)) {
      this.#own.mesh = missingMeshFile(this.#fullName(name), this.#own.mesh);
    }
    for (const object of objects) this.put(object);
  }

  #heldOf({ metadata }: RawObject): Held | undefined {
    const { namespace, name, sharedName } = this.#places;
    if (metadata.namespace !== namespace) return undefined;
    if (metadata.name === name) return this.#own;
    return metadata.name === sharedName ? this.#shared : undefined;
  }

  #fullName(name: string): string {
    return `ConfigMap/${this.#places.namespace}/${name}`;
  }
}
