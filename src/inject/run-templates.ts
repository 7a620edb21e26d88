/** Renders the templates of a pod and lays what they give over it. */

import { TemplateError } from "@mizzen/go-template/template-error";
import { Struct, type Value } from "@mizzen/go-template/value";
import { sharedMessageValue } from "#config/mesh/message-value.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";
import { checkAnnotations } from "./check-annotations.ts";
import type { InjectionRequest } from "./injection-request.ts";
import { InjectionError } from "./injector/injection-error.ts";
import type { Injector } from "./injector/injector.ts";
import { proxyImage } from "./injector/proxy-image.ts";
import { FieldError, type JsonObject } from "./kubernetes/canonical.ts";
import { goStruct } from "./kubernetes/go-value.ts";
import { strategicMerge } from "./kubernetes/strategic-merge.ts";
import { NATIVE_SIDECAR, TEMPLATES } from "./pod/names.ts";
import { annotationOf, type Container, containersOf, type Pod, PROXY_CONTAINER, readPod, withSpec } from "./pod/pod.ts";
import { proxyIds } from "./pod/proxy-ids.ts";
import { withoutInjected } from "./reinjection.ts";

/** More than any node can run. */
const MAX_CONTAINERS = 1_000;
const MAX_TEMPLATES = 10;

/** The pod with the templates over it, and what the templates alone give. */
export interface RunResult {
  readonly merged: Pod;
  readonly rendered: Pod;
}

/** Throws an `InjectionError`. */
export function runTemplates(request: InjectionRequest): RunResult {
  const { pod, injector } = request;
  const problems = checkAnnotations(pod.metadata.annotations ?? {});
  if (problems.length > 0) throw new InjectionError(problems.join("; "));
  const bare = withoutInjected(pod, injector.mesh.statusPort);
  const names = templateNames(pod, injector);
  checkAmounts(bare, names);
  const data = templateData(bare, request);
  let merged = pod;
  let rendered: Pod = { metadata: {}, spec: { containers: null } };
  for (const name of names) {
    const patch = renderTemplate(name, data, injector);
    rendered = mergePod(rendered, patch, name);
    merged = mergePod(withProxyMoved(merged, rendered, request.nativeSidecars), patch, name);
  }
  return { merged, rendered };
}

/** Templates go through all containers, in time that may grow with the square of their number. */
function checkAmounts(pod: Pod, templates: readonly string[]): void {
  const containers = containersOf(pod).length;
  if (containers > MAX_CONTAINERS)
    throw new InjectionError(`the pod has ${containers} containers: at most ${MAX_CONTAINERS} are supported`);
  if (templates.length > MAX_TEMPLATES)
    throw new InjectionError(
      `annotation ${TEMPLATES} asks for ${templates.length} templates: at most ${MAX_TEMPLATES} are supported`,
    );
}

/** The templates of a pod: those it names or the default ones, aliases replaced once. */
function templateNames(pod: Pod, { defaultTemplates, aliases }: Injector): readonly string[] {
  const asked = annotationOf(pod, TEMPLATES)
    ?.split(",")
    .map((name) => name.trim());
  return (asked ?? defaultTemplates).flatMap((name) => (Object.hasOwn(aliases, name) ? (aliases[name] ?? []) : [name]));
}

function renderTemplate(name: string, data: Value, { templates }: Injector): JsonObject {
  const template = templates.get(name);
  if (template === undefined)
    throw new InjectionError(`requested template "${name}" not found; have ${[...templates.keys()].join(", ")}`);
  const { value, error } = readDocument(executed(() => template.execute(data)));
  if (error !== undefined)
    throw new InjectionError(`template "${name}" gives what ${error.message} at line ${error.line} of its output`);
  if (value !== undefined && !isRecord(value)) throw new InjectionError(`template "${name}" gives no object`);
  return value ?? {};
}

function executed(execute: () => string): string {
  try {
    return execute();
  } catch (thrown) {
    if (thrown instanceof TemplateError) throw new InjectionError(thrown.message);
    throw thrown;
  }
}

function mergePod(pod: Pod, patch: JsonObject, name: string): Pod {
  try {
    return readPod(strategicMerge("Pod", pod, patch));
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown;
    throw new InjectionError(`template "${name}" does not fit the pod: ${thrown.message}`);
  }
}

/**
 * With native sidecars the template has the proxy among the init containers, while users who adapt it write it among the
 * others: it moves to where the template has it.
 */
function withProxyMoved(pod: Pod, rendered: Pod, nativeSidecars: boolean): Pod {
  const asked = annotationOf(pod, NATIVE_SIDECAR);
  const isNative = asked === "true" || (asked !== "false" && nativeSidecars);
  const isProxy = ({ name }: Container) => name === PROXY_CONTAINER;
  const { containers, initContainers = [] } = pod.spec;
  const own = containers?.find(isProxy);
  if (!isNative || own === undefined || !rendered.spec.initContainers?.some(isProxy)) return pod;
  return withSpec(pod, {
    containers: containers?.filter((container) => container !== own) ?? null,
    initContainers: [...initContainers, own],
  });
}

/** What templates see of a pod without anything injected. */
function templateData(pod: Pod, request: InjectionRequest): Struct {
  const { owner, proxyConfig, nativeSidecars, injector } = request;
  const { mesh, values, revision, compliancePolicy } = injector;
  const { uid, gid } = proxyIds(request.namespaceAnnotations);
  const { image } = proxyConfig;
  const imageType = isRecord(image) ? String(image.imageType ?? "") : undefined;
  return new Struct("*inject.SidecarTemplateData", {
    TypeMeta: new Struct("v1.TypeMeta", { Kind: owner.kind, APIVersion: owner.apiVersion }),
    DeploymentMeta: new Struct("types.NamespacedName", { Name: owner.name, Namespace: owner.namespace }),
    ObjectMeta: goStruct("ObjectMeta", pod.metadata),
    Spec: goStruct("PodSpec", pod.spec),
    ProxyConfig: sharedMessageValue("ProxyConfig", proxyConfig),
    MeshConfig: mesh.value,
    Values: values.value,
    Revision: revision,
    NativeSidecars: nativeSidecars,
    ProxyImage: proxyImage({ values, imageType, annotations: pod.metadata.annotations ?? {} }),
    ProxyUID: BigInt(uid),
    ProxyGID: BigInt(gid),
    InboundTrafficPolicyMode: mesh.inboundMode,
    CompliancePolicy: compliancePolicy,
  });
}
