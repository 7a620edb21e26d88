/** What an installation does in a cluster: looks before, applies, waits, and takes away. */
import { setTimeout as wait } from "node:timers/promises";
import { isRecord } from "#lib/is-record.ts";
import { APPLY_PATCH, ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { ResourceDirectory } from "#lib/kubernetes/resource-directory.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { OWNER_LABEL } from "./manifest.ts";

const MANAGER = "mizzen";
const LOOK_AGAIN_MS = 250;
/** Older ones lack what the definitions of kinds use. */
const OLDEST_SERVER = 29;

/** Kinds that an installation may hold, besides definitions of kinds and the namespace, in the order in which they are taken away. */
const OWNED: readonly (readonly [apiVersion: string, kind: string])[] = [
  ["admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"],
  ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"],
  ["autoscaling/v2", "HorizontalPodAutoscaler"],
  ["policy/v1", "PodDisruptionBudget"],
  ["apps/v1", "Deployment"],
  ["v1", "Service"],
  ["v1", "ConfigMap"],
  ["rbac.authorization.k8s.io/v1", "RoleBinding"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"],
  ["rbac.authorization.k8s.io/v1", "ClusterRole"],
  ["v1", "ServiceAccount"],
];

/** One line for each thing that was done. */
export type Say = (line: string) => void;

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly say: Say;
  readonly signal: AbortSignal;
}

export class InstallCluster {
  readonly #api: KubernetesApi;
  readonly #directory: ResourceDirectory;

  constructor(api: KubernetesApi) {
    this.#api = api;
    this.#directory = new ResourceDirectory(api);
  }

  /** What stands in the way of an installation, one line each. */
  async obstacles(objects: readonly RawObject[], owner: string): Promise<readonly string[]> {
    const version = await this.#api.call<{
      readonly major: string;
      readonly minor: string;
      readonly gitVersion: string;
    }>({
      path: "/version",
    });
    const minor = Number.parseInt(version.minor, 10);
    const tooOld = version.major === "1" && minor < OLDEST_SERVER;
    return [
      ...(tooOld ? [`Kubernetes ${version.gitVersion} is too old: 1.${OLDEST_SERVER} or newer is needed`] : []),
      ...(await this.#missingRights(objects)),
      ...(await this.#foreign(objects, owner)),
    ];
  }

  /** Creates or changes objects. Definitions are waited for: the rest may need them. */
  async apply(objects: readonly RawObject[], say: Say): Promise<void> {
    for (const object of objects) {
      const path = await this.#pathOf(object);
      const query = { fieldManager: MANAGER, force: true };
      await this.#api.call({ method: "PATCH", path, query, body: object, contentType: APPLY_PATCH });
      if (object.kind === "CustomResourceDefinition") await this.#untilEstablished(path);
      else say(`applied ${nameOf(object)}`);
    }
  }

  /** Waits until Deployments have all of their pods. */
  async untilReady(objects: readonly RawObject[], { timeoutMs, say, signal }: WaitOptions): Promise<void> {
    const end = Date.now() + timeoutMs;
    const waiting = new Map(
      objects.filter(({ kind }) => kind === "Deployment").map((object) => [nameOf(object), object]),
    );
    let said = "";
    while (waiting.size > 0 && !signal.aborted) {
      const reasons: string[] = [];
      for (const [name, object] of waiting) {
        const reason = notReady(await this.#api.call({ path: await this.#pathOf(object) }));
        if (reason !== undefined) reasons.push(`${name}: ${reason}`);
        else {
          waiting.delete(name);
          say(`${name} is ready`);
        }
      }
      if (reasons.length === 0) return;
      if (Date.now() > end)
        throw new MeshError("INSTALL_NOT_READY", `not ready in ${timeoutMs / 1000} s: ${reasons.join("; ")}`);
      if (reasons.join() !== said) say(`waiting for ${reasons.join("; ")}`);
      said = reasons.join();
      await wait(LOOK_AGAIN_MS);
    }
  }

  /** Takes away what an earlier installation of this owner had and this one has not. */
  async prune(objects: readonly RawObject[], owner: string, say: Say): Promise<void> {
    const kept = new Set(objects.map(nameOf));
    for (const object of await this.#owned(owner)) {
      if (!kept.has(nameOf(object))) await this.#delete(object, say);
    }
  }

  /** Takes an installation away; without a name all of them. Gives the number of objects. */
  async remove(owner: string | undefined, say: Say): Promise<number> {
    const objects = await this.#owned(owner);
    for (const object of objects) await this.#delete(object, say);
    return objects.length;
  }

  /** Takes away all that any installation left: the roots in namespaces, definitions of kinds with all objects, and the namespace. */
  async purge(namespace: string, say: Say): Promise<void> {
    const all = (await this.#listed("v1", "ConfigMap", { fieldSelector: "metadata.name=istio-ca-root-cert" })) ?? [];
    const definitions = await this.#listed("apiextensions.k8s.io/v1", "CustomResourceDefinition", OF_MIZZEN);
    const homes = await this.#listed("v1", "Namespace", OF_MIZZEN);
    const home = homes.filter(({ metadata }) => metadata.name === namespace);
    const inHome = home.length > 0 ? [] : await this.#leftovers(namespace);
    for (const object of [...definitions, ...all, ...inHome, ...home]) await this.#delete(object, say);
  }

  /** What a control plane writes into its own namespace while it runs. */
  async #leftovers(namespace: string): Promise<readonly RawObject[]> {
    const leases = await this.#listed("coordination.k8s.io/v1", "Lease", {});
    const secrets = await this.#listed("v1", "Secret", { fieldSelector: "metadata.name=istio-ca-secret" });
    const ours = ({ metadata }: RawObject) => metadata.namespace === namespace;
    return [...leases.filter(({ metadata }) => metadata.name.startsWith("istio-leader")), ...secrets].filter(ours);
  }

  async #owned(owner: string | undefined): Promise<readonly RawObject[]> {
    const labelSelector = owner === undefined ? OWNER_LABEL : `${OWNER_LABEL}=${owner}`;
    const lists = OWNED.map(([apiVersion, kind]) => this.#listed(apiVersion, kind, { labelSelector }));
    return (await Promise.all(lists)).flat();
  }

  async #listed(
    apiVersion: string,
    kind: string,
    query: Readonly<Record<string, string>>,
  ): Promise<readonly RawObject[]> {
    const type = await this.#directory.typeOf(apiVersion, kind);
    if (type === undefined) return [];
    const { items = [] } = await this.#api.call<{ readonly items?: readonly RawObject[] }>({
      path: pathOf(type),
      query,
    });
    return items.map((item) => ({ apiVersion, kind, ...item }));
  }

  async #delete(object: RawObject, say: Say): Promise<void> {
    try {
      const query = { propagationPolicy: "Background" };
      await this.#api.call({ method: "DELETE", path: await this.#pathOf(object), query });
      say(`removed ${nameOf(object)}`);
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
    }
  }

  async #pathOf(object: RawObject): Promise<string> {
    const { apiVersion = "", kind = "" } = object;
    const type = await this.#directory.typeOf(apiVersion, kind);
    if (type === undefined) throw new MeshError("INSTALL_INVALID", `the API server has no ${kind} of ${apiVersion}`);
    return pathOf(type, { namespace: object.metadata.namespace, name: object.metadata.name });
  }

  async #untilEstablished(path: string): Promise<void> {
    for (;;) {
      const { status } = await this.#api.call({ path });
      const conditions = isRecord(status) && Array.isArray(status.conditions) ? status.conditions : [];
      if (conditions.some((one) => isRecord(one) && one.type === "Established" && one.status === "True")) return;
      await wait(20);
    }
  }

  /** Rights that we need and have not, each told once. */
  async #missingRights(objects: readonly RawObject[]): Promise<readonly string[]> {
    const types = new Map<string, ResourceType>();
    for (const { apiVersion = "", kind = "" } of objects) {
      const type = await this.#directory.typeOf(apiVersion, kind);
      if (type !== undefined) types.set(`${type.group}/${type.plural}`, type);
    }
    const answers = await Promise.all([...types.values()].map((type) => this.#mayWrite(type)));
    return answers.flat();
  }

  async #mayWrite({ group, plural }: ResourceType): Promise<readonly string[]> {
    const resourceAttributes = { group, resource: plural, verb: "patch" };
    const { status } = await this.#api.call({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      body: { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } },
    });
    return isRecord(status) && status.allowed === true
      ? []
      : [`you may not patch ${group === "" ? plural : `${plural}.${group}`}`];
  }

  /** Control planes that somebody else installed under our names. */
  async #foreign(objects: readonly RawObject[], owner: string): Promise<readonly string[]> {
    const found: string[] = [];
    for (const object of objects.filter(({ kind }) => kind === "Deployment")) {
      try {
        const { metadata } = await this.#api.call({ path: await this.#pathOf(object) });
        const has = metadata.labels?.[OWNER_LABEL];
        if (has !== owner)
          found.push(`${nameOf(object)} is there and not ours${has === undefined ? "" : ` but of revision ${has}`}`);
      } catch (problem) {
        if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
      }
    }
    return found;
  }
}

const OF_MIZZEN = { labelSelector: OWNER_LABEL };

function nameOf({ kind, metadata }: RawObject): string {
  return [kind, metadata.namespace, metadata.name].filter((part) => part !== undefined).join("/");
}

/** Undefined when all pods are there and new. */
function notReady({ metadata, spec, status }: RawObject): string | undefined {
  const wanted = isRecord(spec) && typeof spec.replicas === "number" ? spec.replicas : 1;
  const { observedGeneration = 0, availableReplicas = 0, updatedReplicas = 0 } = (status ?? {}) as DeploymentStatus;
  if (observedGeneration < (metadata.generation ?? 0)) return "not looked at yet";
  if (updatedReplicas < wanted) return `${updatedReplicas} of ${wanted} pods are new`;
  return availableReplicas < wanted ? `${availableReplicas} of ${wanted} pods are available` : undefined;
}

interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly availableReplicas?: number;
  readonly updatedReplicas?: number;
}
