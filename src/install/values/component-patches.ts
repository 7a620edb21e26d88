/**
 * What an IstioOperator says under `k8s` of a component, laid over the objects that the chart made: single fields where their
 * Deployment, Service, autoscaler or budget has them, then `overlays`, which change any field of any object of the component.
 */
import { FieldError, type JsonObject } from "#inject/kubernetes/canonical.ts";
import { strategicMerge } from "#inject/kubernetes/strategic-merge.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { OverlayError, overlayPatched } from "./overlay-path.ts";
import { overlaid, type Values } from "./values.ts";

/** What `k8s` of one component says. */
export interface ComponentPatch {
  /** As objects name it in their label. */
  readonly component: string;
  /** Of one gateway among several; undefined: all objects of the component are its own. */
  readonly name?: string;
  /** Empty or undefined: that of the control plane. */
  readonly namespace?: string;
  readonly resources: Values;
}

/** Says what has no effect, one line each. */
export type Tell = (line: string) => void;

/** Where the objects of a release are. */
interface Home {
  readonly namespace: string;
  /** Behind names of the control plane: empty, or `-` and its revision. */
  readonly suffix: string;
}

/** Every object of the chart has it. */
const COMPONENT_LABEL = "operator.istio.io/component";
/** The container that settings of a component are about. */
const CONTAINERS: Readonly<Record<string, string>> = { Pilot: "discovery" };
const GATEWAY_CONTAINER = "istio-proxy";

/** The kind of object a field belongs to, and the patch that it is. */
interface Field {
  readonly kind: string;
  readonly patch: (value: unknown, container: string) => JsonObject;
}

const inPod = (name: string): Field => ({
  kind: "Deployment",
  patch: (value) => ({ spec: { template: { spec: { [name]: value } } } }),
});
const inContainer = (name: string): Field => ({
  kind: "Deployment",
  patch: (value, container) => ({
    spec: { template: { spec: { containers: [{ name: container, [name]: value }] } } },
  }),
});
const inSpec = (kind: string): Field => ({ kind, patch: (value) => ({ spec: value }) });

const FIELDS: Readonly<Record<string, Field>> = {
  affinity: inPod("affinity"),
  env: inContainer("env"),
  hpaSpec: inSpec("HorizontalPodAutoscaler"),
  imagePullPolicy: inContainer("imagePullPolicy"),
  nodeSelector: inPod("nodeSelector"),
  podAnnotations: {
    kind: "Deployment",
    patch: (value) => ({ spec: { template: { metadata: { annotations: value } } } }),
  },
  podDisruptionBudget: inSpec("PodDisruptionBudget"),
  priorityClassName: inPod("priorityClassName"),
  readinessProbe: inContainer("readinessProbe"),
  replicaCount: { kind: "Deployment", patch: (value) => ({ spec: { replicas: value } }) },
  resources: inContainer("resources"),
  securityContext: inPod("securityContext"),
  service: inSpec("Service"),
  serviceAnnotations: { kind: "Service", patch: (value) => ({ metadata: { annotations: value } }) },
  strategy: { kind: "Deployment", patch: (value) => ({ spec: { strategy: value } }) },
  tolerations: inPod("tolerations"),
  volumeMounts: inContainer("volumeMounts"),
  volumes: inPod("volumes"),
};
/** Fields that hold a list; the others hold an object, or what is named here. */
const LISTS = ["env", "tolerations", "volumes", "volumeMounts", "overlays"];
const SCALARS: Readonly<Record<string, string>> = {
  imagePullPolicy: "string",
  priorityClassName: "string",
  replicaCount: "number",
};

/** Throws a MeshError on a field that there is not, or of the wrong type. `path` is where they are. */
export function checkResources(resources: Values, path: string): void {
  const refuse = (name: string, what: string) => {
    throw new MeshError("INSTALL_INVALID", `${path}.${name}: ${what}`);
  };
  for (const [name, value] of Object.entries(resources)) {
    if (name !== "overlays" && !Object.hasOwn(FIELDS, name)) refuse(name, "cannot be set here");
    if (value === null) continue;
    const scalar = SCALARS[name];
    if (LISTS.includes(name)) {
      if (!Array.isArray(value)) refuse(name, "a list is wanted");
    } else if (scalar !== undefined) {
      if (typeof value !== scalar) refuse(name, `a ${scalar === "string" ? "text" : scalar} is wanted`);
    } else if (!isRecord(value)) refuse(name, "an object is wanted");
  }
}

/** The objects with what components say laid over them. What leads nowhere is told. Throws a MeshError. */
export function patchedObjects(
  objects: readonly RawObject[],
  patches: readonly ComponentPatch[],
  home: Home & { readonly tell: Tell },
): readonly RawObject[] {
  return patches.reduce<readonly RawObject[]>((before, patch) => {
    const isOwn = (object: RawObject) => isOf(object, patch, home);
    const patched = before.map((object) => (isOwn(object) ? withFields(object, patch, home) : object));
    return overlays(patch).reduce<readonly RawObject[]>(
      (all, overlay) => withOverlay(all, { overlay, isOwn, tell: home.tell }),
      patched,
    );
  }, objects);
}

function isOf({ kind, metadata }: RawObject, { component, name, namespace = "" }: ComponentPatch, home: Home): boolean {
  if (kind === "CustomResourceDefinition") return component === "Base";
  if (metadata.labels?.[COMPONENT_LABEL] !== component) return false;
  const isHere = metadata.namespace === undefined || metadata.namespace === (namespace || home.namespace);
  return name === undefined || (isHere && (metadata.name === name || metadata.name.startsWith(`${name}-`)));
}

function withFields(object: RawObject, patch: ComponentPatch, { suffix }: Home): RawObject {
  const { component, name = component === "Pilot" ? `istiod${suffix}` : undefined, resources } = patch;
  if (object.metadata.name !== name) return object;
  const container = CONTAINERS[component] ?? GATEWAY_CONTAINER;
  return Object.entries(resources).reduce((before, [field, value]) => {
    const known = FIELDS[field];
    if (known === undefined || known.kind !== object.kind || value === null) return before;
    return laidOver(before, known.patch(value, container), `components: k8s.${field} of ${name}`);
  }, object);
}

function laidOver(object: RawObject, patch: JsonObject, what: string): RawObject {
  const { kind = "" } = object;
  try {
    // Lists of these two kinds are taken as a whole.
    if (kind === "HorizontalPodAutoscaler") return asObject(overlaid(asValues(object), patch));
    if (kind === "PodDisruptionBudget") return asObject(oneBound(overlaid(asValues(object), patch)));
    return asObject(strategicMerge(kind, asValues(object), patch));
  } catch (problem) {
    if (!(problem instanceof FieldError)) throw problem;
    throw new MeshError("INSTALL_INVALID", `${what}: ${problem.message}`, { cause: problem });
  }
}

/** A budget has one bound; the chart's gives way. */
function oneBound(budget: Values): Values {
  if (!isRecord(budget.spec) || budget.spec.maxUnavailable === undefined) return budget;
  const { minAvailable: _, ...spec } = budget.spec;
  return { ...budget, spec };
}

interface Overlay {
  readonly kind: string;
  readonly name: string;
  readonly patches: readonly unknown[];
}

function overlays({ resources }: ComponentPatch): readonly Overlay[] {
  const list: readonly unknown[] = Array.isArray(resources.overlays) ? resources.overlays : [];
  return list.flatMap((overlay) => {
    if (!isRecord(overlay)) return [];
    const { kind, name, patches } = overlay;
    return [{ kind: String(kind), name: String(name), patches: Array.isArray(patches) ? patches : [] }];
  });
}

interface Overlaying {
  readonly overlay: Overlay;
  readonly isOwn: (object: RawObject) => boolean;
  readonly tell: Tell;
}

/** As with Istio, an overlay that finds nothing is no mistake: it may be for objects of other settings. */
function withOverlay(objects: readonly RawObject[], { overlay, isOwn, tell }: Overlaying): readonly RawObject[] {
  const { kind, name, patches } = overlay;
  const isMeant = (object: RawObject) => object.kind === kind && object.metadata.name === name && isOwn(object);
  if (!objects.some(isMeant)) tell(`overlay of ${kind} ${name}: there is no such object: it has no effect`);
  return objects.map((object) => {
    if (!isMeant(object)) return object;
    return patches.reduce<RawObject>((before, patch) => {
      const { path = "", value = null } = isRecord(patch) ? patch : {};
      try {
        return asObject(overlayPatched(asValues(before), String(path), value));
      } catch (problem) {
        if (!(problem instanceof OverlayError)) throw problem;
        tell(`overlay of ${kind} ${name}: ${problem.message}: it has no effect`);
        return before;
      }
    }, object);
  });
}

function asValues(object: RawObject): Values {
  return { ...object };
}

function asObject(values: Values): RawObject {
  return values as unknown as RawObject;
}
