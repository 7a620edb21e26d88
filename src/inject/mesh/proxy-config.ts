/** The configuration of a pod's proxy: what the mesh says, ProxyConfig objects and the annotation of the pod. */
import type { ProxyConfigObject } from "#config/kinds/proxy-config/schema.ts";
import {
  checkProxyLayer,
  DEFAULT_PROXY_CONFIG,
  type Layer,
  overlayProxyConfig,
} from "#config/proxy-config/proxy-config.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";

/** A ProxyConfig object and where it is. */
export interface PlacedProxyConfig {
  readonly namespace: string;
  readonly spec: ProxyConfigObject;
}

/** Whose proxy it is. */
export interface ProxyConfigTarget {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The annotation `proxy.istio.io/config`. */
  readonly annotation: string | undefined;
}

/** What is known of the mesh. */
export interface ProxyConfigSources {
  readonly defaultConfig: Layer;
  readonly rootNamespace: string;
  /** The oldest first: of several that match, it counts. */
  readonly objects: readonly PlacedProxyConfig[];
}

/** Each on top of the one before: mesh, root namespace, namespace, annotation, selected workload. */
export function proxyConfigOf(target: ProxyConfigTarget, sources: ProxyConfigSources): Layer {
  const { rootNamespace, objects } = sources;
  const wide = (namespace: string) =>
    objects.find((object) => object.namespace === namespace && object.spec.selector === undefined);
  const own = objects.find(
    ({ namespace, spec }) => namespace === target.namespace && selects(spec.selector?.matchLabels, target.labels),
  );
  const inNamespace = target.namespace === rootNamespace ? undefined : wide(target.namespace);
  const layers = [fieldsOf(wide(rootNamespace)), fieldsOf(inNamespace), annotated(target.annotation), fieldsOf(own)];
  return layers.reduce<Layer>(overlaid, sources.defaultConfig);
}

/** The mesh's configuration with an annotation over it, which is all that counts where there are no objects. */
export function withAnnotation(defaultConfig: Layer, annotation: string | undefined): Layer {
  return overlaid(defaultConfig, annotated(annotation));
}

/** What is wrong with an annotation `proxy.istio.io/config`; unknown fields are not. */
export function checkEffectiveProxyConfig(annotation: string): string | undefined {
  const problems: string[] = [];
  const report = (field: string, message: string, severity = "error") => {
    if (severity === "error") problems.push(`${field} ${message}`);
  };
  const { value, error } = readDocument(annotation);
  if (error !== undefined) return error.message;
  if (value !== undefined && !isRecord(value)) return "must be an object";
  checkProxyLayer(overlayProxyConfig(DEFAULT_PROXY_CONFIG, value ?? {}, report), report);
  return problems[0];
}

/** Most pods have none of these layers: then the mesh's own configuration stays the same object. */
function overlaid(below: Layer, given: Readonly<Record<string, unknown>>): Layer {
  return Object.keys(given).length === 0 ? below : overlayProxyConfig(below, given, ignored);
}

function fieldsOf(object: PlacedProxyConfig | undefined): Readonly<Record<string, unknown>> {
  if (object === undefined) return {};
  const { concurrency, environmentVariables, image } = object.spec;
  return { concurrency, proxyMetadata: environmentVariables, image };
}

function annotated(annotation: string | undefined): Readonly<Record<string, unknown>> {
  if (annotation === undefined) return {};
  const { value } = readDocument(annotation);
  return isRecord(value) ? value : {};
}

function selects(
  wanted: Readonly<Record<string, string>> | undefined,
  labels: Readonly<Record<string, string>>,
): boolean {
  const entries = Object.entries(wanted ?? {});
  return entries.length > 0 && entries.every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

/** What is wrong with an annotation was told before; objects were checked when they were taken. */
function ignored(): void {}
