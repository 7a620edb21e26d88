/** What an installation does in a cluster: applies, waits, and takes away. */
import { setTimeout as wait } from "node:timers/promises";
import { isRecord } from "#lib/json/is-record.ts";
import { APPLY_PATCH, ApiError, type RawObject } from "#lib/kubernetes/api-client.ts";
import { ResourceDirectory } from "#lib/kubernetes/resource-directory.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { objectName } from "./difference.ts";
import { OWNER_LABEL } from "./manifest.ts";
import type { PatientApi, Say } from "./patient-api.ts";
import { NOT_PRUNED_LABEL, TAG_LABEL, withoutPolicies } from "./tag-objects.ts";

const MANAGER = "mizzen";
const LOOK_AGAIN_MS = 250;
/** What the control plane puts into every namespace, under these names or others: then label and key tell. */
const NAMESPACE_MAPS = ["istio-ca-root-cert", "istio-ca-crl"];
const MAP_LABEL = "istio.io/config=true";
const MAP_KEYS = ["root-cert.pem", "ca-crl.pem"];
/** Of every object that the chart gives: by it Istio's installer finds what is its own. */
const COMPONENT_LABEL = "operator.istio.io/component";
/** The name of the IstioOperator that asked for an object. */
const OWNING_LABEL = "install.operator.istio.io/owning-resource";
/** How long what was removed may take to be gone. */
const GONE_MS = 60_000;

/** Kinds that an installation may hold, besides definitions of kinds and the namespace, in the order in which they are taken away. */
const OWNED: readonly (readonly [apiVersion: string, kind: string])[] = [
  ["admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"],
  ["admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"],
  ["autoscaling/v2", "HorizontalPodAutoscaler"],
  ["policy/v1", "PodDisruptionBudget"],
  ["networking.k8s.io/v1", "NetworkPolicy"],
  ["apps/v1", "Deployment"],
  ["v1", "Service"],
  ["v1", "ConfigMap"],
  ["rbac.authorization.k8s.io/v1", "RoleBinding"],
  ["rbac.authorization.k8s.io/v1", "Role"],
  ["rbac.authorization.k8s.io/v1", "ClusterRoleBinding"],
  ["rbac.authorization.k8s.io/v1", "ClusterRole"],
  ["v1", "ServiceAccount"],
];

/** Nothing is lost with one of these but pods, which an upgrade replaces anyway; with a Service its addresses would be. */
const REPLACED = ["Deployment", "RoleBinding", "ClusterRoleBinding"];

/** Whose objects. */
export interface Owner {
  readonly revision: string;
  /** Of the IstioOperator among several of a revision; undefined: any. */
  readonly name?: string;
}

/** What objects have where no IstioOperator with a name asked for them. */
export const NO_OWNER_NAME = "unknown";

export interface WaitOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export class InstallCluster {
  readonly #api: PatientApi;
  readonly #directory: ResourceDirectory;
  readonly #say: Say;
  /** Whether it only says what it would take away. */
  readonly #removesNothing: boolean;

  constructor(api: PatientApi, say: Say, { removesNothing = false } = {}) {
    this.#api = api;
    this.#directory = new ResourceDirectory(api);
    this.#say = say;
    this.#removesNothing = removesNothing;
  }

  /** Creates or changes objects. Definitions are waited for: the rest may need them. */
  async apply(objects: readonly RawObject[]): Promise<void> {
    const isDefinition = ({ kind }: RawObject) => kind === "CustomResourceDefinition";
    const definitions = objects.filter(isDefinition);
    await Promise.all(definitions.map((object) => this.#applyDefinition(object)));
    if (definitions.length > 0) this.#say(`applied ${definitions.length} definitions of kinds`);
    for (const object of objects.filter((one) => !isDefinition(one))) {
      if (object.kind === "Namespace" && (await this.#isForeign(object))) continue;
      await this.#applyOrReplace(await this.#asDecided(object));
      this.#say(`applied ${objectName(object)}`);
    }
  }

  /** Waits until Deployments have all of their pods. */
  async untilReady(objects: readonly RawObject[], { timeoutMs, signal }: WaitOptions): Promise<void> {
    const end = Date.now() + timeoutMs;
    const waiting = new Map(
      objects.filter(({ kind }) => kind === "Deployment").map((object) => [objectName(object), object]),
    );
    let said = "";
    while (waiting.size > 0 && !signal.aborted) {
      const reasons: string[] = [];
      for (const [name, object] of waiting) {
        const reason = notReady(await this.#get(object));
        if (reason !== undefined) reasons.push(`${name}: ${reason}`);
        else {
          waiting.delete(name);
          this.#say(`${name} is ready`);
        }
      }
      if (reasons.length === 0) return;
      if (Date.now() > end)
        throw new MeshError("INSTALL_NOT_READY", `not ready in ${timeoutMs / 1000} s: ${reasons.join("; ")}`);
      if (reasons.join() !== said) this.#say(`waiting for ${reasons.join("; ")}`);
      said = reasons.join();
      await wait(LOOK_AGAIN_MS);
    }
  }

  /** Takes away what an earlier installation of this owner had and this one has not. */
  async prune(objects: readonly RawObject[], owner: Owner): Promise<void> {
    const kept = new Set(objects.map(objectName));
    for (const object of await this.#owned(owner)) {
      const stays = kept.has(objectName(object)) || object.metadata.labels?.[NOT_PRUNED_LABEL] === "true";
      if (!stays) await this.#delete(object);
    }
  }

  /** Takes an installation away; without a name all of them, those of Helm included. Gives the number of objects. */
  async remove(owner: Owner | undefined): Promise<number> {
    const objects = await this.#owned(owner);
    for (const object of objects) await this.#delete(object);
    return objects.length;
  }

  /** Takes away those of these objects that are of an installation. */
  async take(objects: readonly RawObject[]): Promise<void> {
    for (const object of objects) {
      const there = await this.#unlessGone(this.#get(object));
      if (there !== undefined && isOfChart(there)) await this.#delete(object);
    }
  }

  /** Where control planes are installed. */
  async homes(): Promise<readonly string[]> {
    const ofControlPlane = ({ metadata }: RawObject) => metadata.labels?.[COMPONENT_LABEL] === "Pilot";
    const namespaces = (await this.#owned(undefined)).filter(ofControlPlane).map(({ metadata }) => metadata.namespace);
    return [...new Set(namespaces.filter((namespace) => namespace !== undefined))];
  }

  /**
   * Takes away all that any installation left: tags, the roots in namespaces, definitions of kinds with all objects, the namespaces
   * that it made, and what is ours in those of `homes` that it did not make. Gives their number.
   */
  async purge(homes: readonly string[]): Promise<number> {
    const maps = await this.#namespaceMaps();
    const definitions = await this.#listed("apiextensions.k8s.io/v1", "CustomResourceDefinition", OF_MIZZEN);
    const namespaces = await this.#listed("v1", "Namespace", OF_MIZZEN);
    const going = namespaces.map(({ metadata }) => metadata.name);
    const leftovers = await this.#leftovers(homes.filter((home) => !going.includes(home)));
    const objects = [...(await this.#tags()), ...definitions, ...maps, ...leftovers, ...namespaces];
    for (const object of objects) await this.#delete(object);
    if (!this.#removesNothing) await this.#untilGone([...definitions, ...namespaces]);
    await this.#tellForeignDefinitions(new Set(definitions.map(objectName)));
    return objects.length;
  }

  async #namespaceMaps(): Promise<readonly RawObject[]> {
    const byName = NAMESPACE_MAPS.map((name) =>
      this.#listed("v1", "ConfigMap", { fieldSelector: `metadata.name=${name}` }),
    );
    const labelled = await this.#listed("v1", "ConfigMap", { labelSelector: MAP_LABEL });
    const ofMesh = labelled.filter(({ metadata, data }) => {
      const keys = isRecord(data) ? Object.keys(data) : [];
      return !NAMESPACE_MAPS.includes(metadata.name) && keys.length === 1 && MAP_KEYS.includes(keys[0] ?? "");
    });
    return [...(await Promise.all(byName)).flat(), ...ofMesh];
  }

  /** Helm keeps definitions of kinds, and so does Istio's installer those of Helm: they are the home of what people wrote. */
  async #tellForeignDefinitions(removed: ReadonlySet<string>): Promise<void> {
    const there = await this.#listed("apiextensions.k8s.io/v1", "CustomResourceDefinition", {});
    const left = there.filter((one) => one.metadata.name.endsWith(".istio.io") && !removed.has(objectName(one)));
    if (left.length === 0) return;
    this.#say(
      `${left.length} definitions of kinds stay, with all configuration: they are not of mizzen install (kubectl delete -f manifests/chart/crds removes those of Helm)`,
    );
  }

  /** Kinds and namespaces are gone when all objects in them are. Somebody may hold one back: then this is said. */
  async #untilGone(objects: readonly RawObject[]): Promise<void> {
    const end = Date.now() + GONE_MS;
    let left = objects;
    while (left.length > 0 && Date.now() < end) {
      const there = await Promise.all(left.map(async (one) => this.#unlessGone(this.#get(one))));
      left = left.filter((_, i) => there[i] !== undefined);
      if (left.length > 0) await wait(LOOK_AGAIN_MS);
    }
    for (const object of left) this.#say(`${objectName(object)} is still being removed: a finalizer holds it back`);
  }

  async #get(object: RawObject): Promise<RawObject> {
    return this.#api.call({ path: await this.#pathOf(object) });
  }

  /** Names that people gave to revisions: without any revision they would hold up pods. */
  async #tags(): Promise<readonly RawObject[]> {
    const kinds = OWNED.filter(([, kind]) => kind.endsWith("WebhookConfiguration") || kind === "Service");
    const lists = kinds.map(([apiVersion, kind]) => this.#listed(apiVersion, kind, { labelSelector: TAG_LABEL }));
    return (await Promise.all(lists)).flat();
  }

  /** What control planes write into their own namespaces while they run. */
  async #leftovers(homes: readonly string[]): Promise<readonly RawObject[]> {
    const leases = await this.#listed("coordination.k8s.io/v1", "Lease", {});
    const secrets = await this.#listed("v1", "Secret", { fieldSelector: "metadata.name=istio-ca-secret" });
    const reports = await this.#listed("v1", "ConfigMap", { labelSelector: "internal.istio.io/distribution-report" });
    const ours = ({ metadata }: RawObject) => homes.includes(metadata.namespace ?? "");
    return [
      ...leases.filter(({ metadata }) => metadata.name.startsWith("istio-leader")),
      ...secrets,
      ...reports,
    ].filter(ours);
  }

  /** Of an owner, or of all: also what Helm made of the chart, and what earlier versions labelled less. */
  async #owned(owner: Owner | undefined): Promise<readonly RawObject[]> {
    const selectors = owner === undefined ? [COMPONENT_LABEL, OWNER_LABEL] : [`${OWNER_LABEL}=${owner.revision}`];
    const lists = OWNED.flatMap(([apiVersion, kind]) =>
      selectors.map((labelSelector) => this.#listed(apiVersion, kind, { labelSelector })),
    );
    const objects = new Map((await Promise.all(lists)).flat().map((object) => [objectName(object), object]));
    const isAsked = ({ metadata: { labels = {} } }: RawObject) =>
      owner?.name === undefined || (labels[OWNING_LABEL] ?? NO_OWNER_NAME) === owner.name;
    return [...objects.values()].filter((object) => isAsked(object) && isOfChart(object) && !isTagOfPerson(object));
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

  async #delete(object: RawObject): Promise<void> {
    if (this.#removesNothing) {
      this.#say(`would remove ${objectName(object)}`);
      return;
    }
    const query = { propagationPolicy: "Background" };
    const answer = this.#api.call({ method: "DELETE", path: await this.#pathOf(object), query });
    if ((await this.#unlessGone(answer)) !== undefined) this.#say(`removed ${objectName(object)}`);
  }

  /** Whether it was there before us: a namespace that people made stays theirs, also when we are purged. */
  async #isForeign(object: RawObject): Promise<boolean> {
    const there = await this.#unlessGone(this.#get(object));
    return there !== undefined && there.metadata.labels?.[OWNER_LABEL] === undefined;
  }

  /** What was found out since the last installation holds: a validation that works would be let through for a moment. */
  async #asDecided(object: RawObject): Promise<RawObject> {
    if (object.kind !== "ValidatingWebhookConfiguration") return object;
    return withoutPolicies(object, await this.#unlessGone(this.#get(object)));
  }

  /** Selectors of Deployments and the roles of bindings never change: one that has others makes way. */
  async #applyOrReplace(object: RawObject): Promise<void> {
    try {
      await this.#applyOne(object);
    } catch (problem) {
      if (!REPLACED.includes(object.kind ?? "") || !isImmutable(problem)) throw problem;
      this.#say(`${objectName(object)} is made anew: a field of it cannot be changed`);
      await this.#delete(object);
      await this.#applyOne(object);
    }
  }

  async #applyOne(object: RawObject): Promise<string> {
    const path = await this.#pathOf(object);
    const query = { fieldManager: MANAGER, force: true };
    await this.#api.call({ method: "PATCH", path, query, body: object, contentType: APPLY_PATCH });
    return path;
  }

  /** One that is still being removed takes changes, and then is gone: it is applied again. */
  async #applyDefinition(object: RawObject): Promise<void> {
    while (!(await this.#isEstablished(await this.#applyOne(object))));
  }

  async #pathOf(object: RawObject): Promise<string> {
    const { apiVersion = "", kind = "" } = object;
    const type = await this.#directory.typeOf(apiVersion, kind);
    if (type === undefined) throw new MeshError("INSTALL_INVALID", `the API server has no ${kind} of ${apiVersion}`);
    return pathOf(type, { namespace: object.metadata.namespace, name: object.metadata.name });
  }

  /** Waits until it can be used; false when it is gone instead. */
  async #isEstablished(path: string): Promise<boolean> {
    for (;;) {
      const definition = await this.#unlessGone(this.#api.call({ path }));
      if (definition === undefined) return false;
      const { metadata, status } = definition;
      const conditions = isRecord(status) && Array.isArray(status.conditions) ? status.conditions : [];
      const isThere = conditions.some((one) => isRecord(one) && one.type === "Established" && one.status === "True");
      if (isThere && metadata.deletionTimestamp === undefined) return true;
      await wait(20);
    }
  }

  async #unlessGone(answer: Promise<RawObject>): Promise<RawObject | undefined> {
    try {
      return await answer;
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 404) return undefined;
      throw problem;
    }
  }
}

function isImmutable(problem: unknown): boolean {
  return (
    problem instanceof ApiError && problem.status === 422 && /immutable|cannot change roleRef/.test(problem.message)
  );
}

/** Istio's own objects are called alike: they are not ours to take away. */
function isOfChart({ metadata: { labels = {} } }: RawObject): boolean {
  return labels[OWNER_LABEL] !== undefined || labels["helm.sh/chart"]?.startsWith("mizzen-") === true;
}

/** Tags copy the labels of the revision they lead to, but not the one by which Istio's installer finds what is its own. */
function isTagOfPerson({ metadata: { labels = {} } }: RawObject): boolean {
  return labels[TAG_LABEL] !== undefined && labels[COMPONENT_LABEL] === undefined;
}

const OF_MIZZEN = { labelSelector: OWNER_LABEL };

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
