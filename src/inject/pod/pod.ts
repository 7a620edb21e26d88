/** Pods as injection sees them: in the usual form of the API, never changed in place. */
import { type CanonicalOptions, canonicalObject } from "../kubernetes/canonical.ts";

/** Who an object is. */
export interface Metadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly [field: string]: unknown;
}

/** An object that owns another. */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly controller?: boolean;
}

/** One container; fields that injection does not look into are kept. */
export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly args?: readonly string[];
  readonly env?: readonly EnvironmentVariable[];
  readonly ports?: readonly ContainerPort[];
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly lifecycle?: { readonly postStart?: Handler; readonly preStop?: Handler; readonly stopSignal?: string };
  readonly securityContext?: SecurityContext;
  readonly [field: string]: unknown;
}

/** A variable of a container. */
export interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: object;
}

/** A port that a container says it listens on. */
export interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol?: string;
}

/** What the kubelet does to a container: one of the ways to ask. */
export interface Handler {
  readonly httpGet?: HttpGet;
  readonly tcpSocket?: { readonly port: number | string; readonly host?: string };
  readonly grpc?: { readonly port: number; readonly service: string | null };
  readonly exec?: object;
}

/** How the kubelet asks whether a container is well. */
export interface Probe extends Handler {
  readonly timeoutSeconds?: number;
  readonly [field: string]: unknown;
}

/** A question over HTTP or HTTPS. */
export interface HttpGet {
  readonly path?: string;
  readonly port: number | string;
  readonly scheme?: string;
  readonly [field: string]: unknown;
}

/** What a container runs as. */
export interface SecurityContext {
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly [field: string]: unknown;
}

/** What a pod is made of. */
export interface PodSpec {
  readonly containers: readonly Container[] | null;
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string }[];
  readonly imagePullSecrets?: readonly { readonly name?: string }[];
  readonly hostNetwork?: boolean;
  readonly nodeName?: string;
  readonly [field: string]: unknown;
}

/** A pod, or the template of one. */
export interface Pod {
  readonly metadata: Metadata;
  readonly spec: PodSpec;
  readonly [field: string]: unknown;
}

/** The container of the proxy. */
export const PROXY_CONTAINER = "istio-proxy";
/** Sets up the redirection of traffic. */
export const INIT_CONTAINER = "istio-init";
/** Checks that the CNI plugin has set it up. */
export const VALIDATION_CONTAINER = "istio-validation";
/** An init container of older templates. */
export const CORE_DUMP_CONTAINER = "enable-core-dump";

/** Reads a pod. Throws a `FieldError`. */
export function readPod(value: unknown, options?: CanonicalOptions): Pod {
  // The tables of the API's types give a pod exactly these fields; the compiler cannot know.
  return canonicalObject("Pod", value, options) as Pod;
}

/** The pod with other annotations. */
export function withAnnotations(pod: Pod, annotations: Readonly<Record<string, string>>): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** The pod with other fields in its spec. */
export function withSpec(pod: Pod, fields: Partial<PodSpec>): Pod {
  return { ...pod, spec: { ...pod.spec, ...fields } };
}

/** The value of an annotation. */
export function annotationOf(pod: Pod, name: string): string | undefined {
  const { annotations = {} } = pod.metadata;
  return Object.hasOwn(annotations, name) ? annotations[name] : undefined;
}

/** Containers in the order in which the API lists them: those of the application first. */
export function containersOf({ spec }: Pod): readonly Container[] {
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
}

/** A container by name, of either kind. */
export function findContainer(pod: Pod, name: string): Container | undefined {
  return containersOf(pod).find((container) => container.name === name);
}

/** The pod with every container of that name changed. */
export function mapContainers(pod: Pod, change: (container: Container) => Container): Pod {
  const { containers, initContainers } = pod.spec;
  return withSpec(pod, {
    containers: containers?.map(change) ?? null,
    ...(initContainers === undefined ? {} : { initContainers: initContainers.map(change) }),
  });
}
