/** Injection into whatever holds a pod: the pod itself, a workload with a template, or a list of these. */
import type { Layer } from "#config/proxy-config/proxy-config.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { injectPod } from "./inject-pod.ts";
import { InjectionError } from "./injector/injection-error.ts";
import type { Injector } from "./injector/injector.ts";
import { canonicalObject, FieldError, type JsonObject } from "./kubernetes/canonical.ts";
import { withDefaultConfig } from "./mesh/injection-mesh.ts";
import { type PlacedProxyConfig, proxyConfigOf, withAnnotation } from "./mesh/proxy-config.ts";
import { decideInjection, unclearWord } from "./pod/decision.ts";
import { INJECT, PROXY_CONFIG } from "./pod/names.ts";
import { type Owner, ownerOf } from "./pod/owner.ts";
import { annotationOf, type Pod, readPod } from "./pod/pod.ts";

/** The object in its usual form, injected or not. */
export interface InjectedObject {
  readonly object: JsonObject;
  /** Why something was left as it is. */
  readonly warnings: readonly string[];
}

/** What holds for all objects. */
export interface ObjectOptions {
  readonly injector: Injector;
  readonly nativeSidecars: boolean;
  /** ProxyConfig objects, the oldest first, where a cluster is known: then workloads get what its webhook would give them. */
  readonly proxyConfigs?: readonly PlacedProxyConfig[];
}

/** Where each kind has the metadata and the spec of its pod. */
const POD_PLACES: Readonly<Record<string, { readonly metadata: readonly string[]; readonly spec: readonly string[] }>> =
  {
    Pod: { metadata: ["metadata"], spec: ["spec"] },
    CronJob: {
      metadata: ["spec", "jobTemplate", "metadata"],
      spec: ["spec", "jobTemplate", "spec", "template", "spec"],
    },
    ...Object.fromEntries(
      ["Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "Job", "ReplicationController", "DeploymentConfig"].map(
        (kind) => [kind, { metadata: ["spec", "template", "metadata"], spec: ["spec", "template", "spec"] }],
      ),
    ),
  };

/** Injects into an object; undefined when it is none that could hold a pod. Throws an `InjectionError`. */
export function injectObject(value: unknown, options: ObjectOptions): InjectedObject | undefined {
  if (!isRecord(value)) return undefined;
  if (value.kind === "List") return injectList(value, options);
  const kind = String(value.kind ?? "");
  if (!Object.hasOwn(POD_PLACES, kind)) return undefined;
  try {
    return injectWorkload(canonicalObject(kind, value, { lenientText: true }), kind, options);
  } catch (thrown) {
    if (!(thrown instanceof InjectionError) && !(thrown instanceof FieldError)) throw thrown;
    throw new InjectionError(`${kind} "${nameOf(value)}": ${thrown.message}`, { cause: thrown });
  }
}

function injectList(list: JsonObject, options: ObjectOptions): InjectedObject {
  const items = Array.isArray(list.items) ? list.items : [];
  const results = items.map((item: unknown) => injectObject(item, options) ?? { object: item, warnings: [] });
  const object = { ...list, metadata: listMetadata(list), items: results.map((result) => result.object) };
  return { object, warnings: results.flatMap(({ warnings }) => warnings) };
}

/** An API server writes empty fields that say nothing, such as `resourceVersion: ""`. */
function listMetadata({ metadata }: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(isRecord(metadata) ? metadata : {}).filter(([, value]) => value !== ""));
}

function injectWorkload(object: JsonObject, kind: string, options: ObjectOptions): InjectedObject {
  const place = POD_PLACES[kind];
  if (place === undefined) throw new Error(`no pod in a ${kind}`);
  const spec = at(object, place.spec);
  if (!isRecord(spec)) throw new InjectionError("spec.template is required");
  const pod = readPod({ metadata: at(object, place.metadata), spec });
  const owner = kind === "Pod" ? ownerOf(pod) : objectOwner(object, kind);
  const skipped = (why: string) => ({
    object,
    warnings: [`===> Skipping injection because ${kind} "${fullName(pod, owner)}" has ${why}`],
  });
  if (pod.spec.hostNetwork) return skipped("host networking enabled");
  const policy = { policy: "enabled", neverInjectSelector: [], alwaysInjectSelector: [] };
  if (!decideInjection(pod, policy).inject) return skipped("sidecar injection disabled");
  const unclear = unclearWord(pod);
  const injected = injectPod({
    pod,
    owner,
    nativeSidecars: options.nativeSidecars,
    proxyEnvironment: {},
    namespaceAnnotations: undefined,
    ...settingsFor(pod, owner, options),
  });
  const withMetadata = replacedAt(object, place.metadata, injected.metadata);
  const warning = `${kind} "${fullName(pod, owner)}": ${INJECT} is "${unclear}", which says nothing: write "true" or "false"`;
  return {
    object: canonicalObject(kind, replacedAt(withMetadata, place.spec, injected.spec)),
    warnings: unclear === undefined ? [] : [warning],
  };
}

function settingsFor(pod: Pod, owner: Owner, { injector, proxyConfigs }: ObjectOptions) {
  const annotation = annotationOf(pod, PROXY_CONFIG);
  if (proxyConfigs !== undefined) {
    const { labels = {}, namespace = owner.namespace } = pod.metadata;
    return {
      injector,
      proxyConfig: proxyConfigOf({ namespace, labels, annotation }, { ...injector.mesh, objects: proxyConfigs }),
    };
  }
  const proxyConfig = withAnnotation(injector.mesh.defaultConfig, annotation);
  return { proxyConfig, injector: withProxyConfig(injector, proxyConfig) };
}

/**
 * Outside of the cluster Istio knows one default template and no aliases, and the annotation of a pod counts for all that the
 * mesh's configuration is asked for.
 */
function withProxyConfig(injector: Injector, proxyConfig: Layer): Injector {
  const mesh = withDefaultConfig(injector.mesh, proxyConfig);
  return { ...injector, defaultTemplates: ["sidecar"], aliases: {}, injectedAnnotations: {}, mesh };
}

function objectOwner(object: JsonObject, kind: string): Owner {
  const metadata = isRecord(object.metadata) ? object.metadata : {};
  return {
    name: String(metadata.name ?? ""),
    namespace: String(metadata.namespace ?? ""),
    kind,
    apiVersion: String(object.apiVersion ?? ""),
  };
}

function fullName({ metadata }: Pod, owner: Owner): string {
  const name = metadata.name ?? owner.name;
  return owner.namespace === "" ? name : `${owner.namespace}/${name}`;
}

function nameOf(value: JsonObject): string {
  const { name, generateName } = isRecord(value.metadata) ? value.metadata : {};
  return String(name ?? generateName ?? "");
}

function at(object: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isRecord(inner) ? inner[key] : undefined), object);
}

function replacedAt(object: JsonObject, [key = "", ...rest]: readonly string[], value: unknown): JsonObject {
  const inner = object[key];
  const replaced = rest.length === 0 ? value : replacedAt(isRecord(inner) ? inner : {}, rest, value);
  return { ...object, [key]: replaced };
}
