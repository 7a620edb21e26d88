/** Finds out from the API server under which path objects of a kind are. */
import { ApiError, type KubernetesApi } from "./api-client.ts";
import type { ResourceType } from "./resource-types.ts";

interface ResourceList {
  readonly resources: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs: readonly string[];
  }[];
}

/** Answers are kept; those of groups that were not there are asked for again. */
export class ResourceDirectory {
  readonly #api: Pick<KubernetesApi, "call">;
  readonly #known = new Map<string, Promise<readonly ResourceType[]>>();

  constructor(api: Pick<KubernetesApi, "call">) {
    this.#api = api;
  }

  /** Undefined when the server has no such kind. */
  async typeOf(apiVersion: string, kind: string): Promise<ResourceType | undefined> {
    return (await this.typesOf(apiVersion)).find((type) => type.kind === kind);
  }

  /** All kinds of a group and version. */
  async typesOf(apiVersion: string): Promise<readonly ResourceType[]> {
    const known = this.#known.get(apiVersion) ?? this.#ask(apiVersion);
    this.#known.set(apiVersion, known);
    const types = await known;
    if (types.length === 0) this.#known.delete(apiVersion);
    return types;
  }

  async #ask(apiVersion: string): Promise<readonly ResourceType[]> {
    const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
    const path = group === "" ? `/api/${version}` : `/apis/${apiVersion}`;
    try {
      const { resources } = await this.#api.call<ResourceList>({ path });
      // Parts of objects, such as `deployments/status`, are no kinds.
      const whole = resources.filter(({ name }) => !name.includes("/"));
      return whole.map(({ name, kind, namespaced }) => ({
        group: group ?? "",
        version: version ?? "",
        kind,
        plural: name,
        namespaced,
      }));
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) return [];
      throw problem;
    }
  }
}
