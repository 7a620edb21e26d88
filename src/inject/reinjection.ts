/**
 * Pods that were injected before, which happens when another webhook changed them: what was injected is taken out again
 * before templates look at the pod, and containers that users adapted are put back as the users wrote them.
 */
import { isRecord } from "#lib/json/is-record.ts";
import { InjectionError } from "./injector/injection-error.ts";
import { canonicalObject, FieldError } from "./kubernetes/canonical.ts";
import { OVERRIDES, STATUS } from "./pod/names.ts";
import { annotationOf, type Container, type Pod, type PodSpec, withAnnotations, withSpec } from "./pod/pod.ts";
import { isPrometheusAnnotation, prometheusPort } from "./prometheus.ts";

/** What the annotation `sidecar.istio.io/status` says was injected, by name. */
export interface InjectionStatus {
  readonly initContainers: readonly string[];
  readonly containers: readonly string[];
  readonly revision: string;
}

/** Containers of users that have the name of one of ours, as they wrote them. */
export interface Overrides {
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
}

/** Reads the status; undefined when it is no JSON object. */
export function parseStatus(text: string): InjectionStatus | undefined {
  const status = parseObject(text);
  if (status === undefined) return undefined;
  const names = (value: unknown) => (Array.isArray(value) ? value.filter((name) => typeof name === "string") : []);
  return {
    initContainers: names(status.initContainers),
    containers: names(status.containers),
    revision: typeof status.revision === "string" ? status.revision : "",
  };
}

/** The status of what templates rendered. Key order and nulls are those of Istio: other programs read it. */
export function formatStatus(rendered: PodSpec, revision: string): string {
  const names = (list: readonly { readonly name?: string }[] | null | undefined) =>
    list === null || list === undefined || list.length === 0 ? null : list.map(({ name = "" }) => name);
  return JSON.stringify({
    initContainers: names(rendered.initContainers),
    containers: names(rendered.containers),
    volumes: names(rendered.volumes),
    imagePullSecrets: names(rendered.imagePullSecrets),
    revision: revision === "" ? "default" : revision,
  });
}

/** The pod as it was before the last injection. */
export function withoutInjected(pod: Pod, statusPort: number): Pod {
  const overrides = overridesOf(pod);
  const bare = stripped(pod, statusPort);
  const missing = (wanted: readonly Container[], present: readonly Container[]) => {
    const names = new Set(present.map(({ name }) => name));
    return wanted.filter(({ name }) => !names.has(name));
  };
  const { containers, initContainers = [] } = bare.spec;
  return withSpec(bare, {
    containers: [...(containers ?? []), ...missing(overrides.containers, containers ?? [])],
    initContainers: [...initContainers, ...missing(overrides.initContainers, initContainers)],
  });
}

/** The containers that a first injection kept. Throws an `InjectionError`. */
export function overridesOf(pod: Pod): Overrides {
  const text = annotationOf(pod, OVERRIDES);
  if (text === undefined) return { containers: [], initContainers: [] };
  const value = parseObject(text);
  if (value === undefined) throw new InjectionError(`annotation ${OVERRIDES} is no JSON object`);
  const read = (list: unknown): readonly Container[] => {
    if (list === undefined || list === null) return [];
    if (!Array.isArray(list)) throw new InjectionError(`annotation ${OVERRIDES} must hold lists of containers`);
    return list.map((item) => readContainer(item));
  };
  return { containers: read(value.containers), initContainers: read(value.initContainers) };
}

function readContainer(item: unknown): Container {
  try {
    return canonicalObject("Container", item) as Container;
  } catch (thrown) {
    if (thrown instanceof FieldError) throw new InjectionError(`annotation ${OVERRIDES}: ${thrown.message}`);
    throw thrown;
  }
}

function stripped(pod: Pod, statusPort: number): Pod {
  const text = annotationOf(pod, STATUS);
  const status = text === undefined ? undefined : parseStatus(text);
  if (status === undefined) return pod;
  const without = (list: readonly Container[] | null | undefined, names: readonly string[]) => {
    const injected = new Set(names);
    return list?.filter(({ name }) => !injected.has(name)) ?? [];
  };
  const { annotations = {} } = pod.metadata;
  const isOurs = prometheusPort(annotations) === String(statusPort);
  const kept = Object.entries(annotations).filter(
    ([name]) => name !== STATUS && !(isOurs && isPrometheusAnnotation(name)),
  );
  return withSpec(withAnnotations(pod, Object.fromEntries(kept)), {
    containers: without(pod.spec.containers, status.containers),
    initContainers: without(pod.spec.initContainers, status.initContainers),
  });
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // somebody else's text: the pod counts as not injected
  }
}
