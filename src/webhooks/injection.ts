/** `/inject`: a pod that is about to be created, answered with the changes that put its proxy in. */

import { injectPod } from "#inject/inject-pod.ts";
import { InjectionError } from "#inject/injector/injection-error.ts";
import type { Injector } from "#inject/injector/injector.ts";
import { jsonPatch } from "#inject/json/json-patch.ts";
import { FieldError } from "#inject/kubernetes/canonical.ts";
import { type PlacedProxyConfig, proxyConfigOf } from "#inject/mesh/proxy-config.ts";
import { decideInjection } from "#inject/pod/decision.ts";
import { PROXY_CONFIG } from "#inject/pod/names.ts";
import { ownerOf } from "#inject/pod/owner.ts";
import { annotationOf, type Pod, readPod } from "#inject/pod/pod.ts";
import { withoutSharedUser } from "#inject/pod/proxy-ids.ts";
import { variablesOfPath } from "#inject/webhook/inject-path.ts";
import type { AdmissionRequest, AdmissionVerdict } from "./admission-review.ts";

/** The cluster of pods that name none. */
export const DEFAULT_CLUSTER = "Kubernetes";

/** What injection looks up, as it is at the time of a request. */
export interface InjectionContext {
  readonly injector: Injector;
  /** The oldest first. */
  readonly proxyConfigs: readonly PlacedProxyConfig[];
  /** Whether a node of a cluster, or all of its nodes, run them. */
  readonly nativeSidecars: (nodeName: string | undefined, cluster: string) => boolean;
  /** On OpenShift, annotations of a namespace of a cluster; undefined elsewhere. */
  readonly namespaceAnnotations?:
    | ((namespace: string, cluster: string) => Readonly<Record<string, string>> | undefined)
    | undefined;
}

/** A verdict and, for logs and metrics, what became of the pod. */
export interface InjectionAnswer {
  readonly verdict: AdmissionVerdict;
  readonly outcome: "injected" | "skipped" | "failed";
  /** Why it was skipped or failed. */
  readonly reason: string;
}

/** Answers a request that came by a path such as `/inject/cluster/c1`. What is looked up may throw an `InjectionError`. */
export function admitPod(request: AdmissionRequest, path: string, lookUp: () => InjectionContext): InjectionAnswer {
  try {
    const context = lookUp();
    const pod = requestedPod(request);
    const decision = decideInjection(pod, context.injector);
    if (!decision.inject) return { verdict: { allowed: true }, outcome: "skipped", reason: decision.reason };
    const injected = injectInto(pod, path, context);
    return { verdict: { allowed: true, patch: jsonPatch(pod, injected) }, outcome: "injected", reason: "" };
  } catch (thrown) {
    if (!(thrown instanceof InjectionError) && !(thrown instanceof FieldError)) throw thrown;
    return { verdict: { allowed: false, message: thrown.message }, outcome: "failed", reason: thrown.message };
  }
}

/** A pod of a template has no namespace yet; what tools keep about its fields plays no part and can be large. */
function requestedPod({ object, namespace }: AdmissionRequest): Pod {
  const { metadata, ...pod } = readPod(object);
  const { managedFields: _, ...kept } = metadata;
  return { ...pod, metadata: { ...kept, ...(kept.namespace || namespace === "" ? {} : { namespace }) } } as Pod;
}

function injectInto(pod: Pod, path: string, context: InjectionContext): Pod {
  const { injector, proxyConfigs, nativeSidecars, namespaceAnnotations } = context;
  const { namespace = "", labels = {} } = pod.metadata;
  const target = { namespace, labels, annotation: annotationOf(pod, PROXY_CONFIG) };
  const proxyEnvironment = variablesOfPath(path);
  const cluster = proxyEnvironment.ISTIO_META_CLUSTER_ID || injector.values.clusterName || DEFAULT_CLUSTER;
  return injectPod({
    pod: namespaceAnnotations === undefined ? pod : withoutSharedUser(pod),
    owner: ownerOf(pod),
    proxyConfig: proxyConfigOf(target, { ...injector.mesh, objects: proxyConfigs }),
    nativeSidecars: nativeSidecars(pod.spec.nodeName, cluster),
    proxyEnvironment,
    namespaceAnnotations: namespaceAnnotations?.(namespace, cluster),
    injector,
  });
}
