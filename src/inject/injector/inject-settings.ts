/** Settings of injection from the texts of files, and what holds where a file is not given. */
import { parseMeshConfig } from "#config/mesh/mesh-config.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";
import { injectionMesh } from "../mesh/injection-mesh.ts";
import { STOCK_TEMPLATES } from "../templates/templates.ts";
import { DEFAULT_VALUES } from "./default-values.ts";
import { InjectionError } from "./injection-error.ts";
import { type InjectionConfig, type Injector, injectorOf, parseInjectionConfig } from "./injector.ts";
import { injectionValues } from "./values.ts";

/** The texts of an installation's settings, each optional. */
export interface InjectionSettings {
  /** `data.mesh` of the ConfigMap `istio`. */
  readonly meshConfig?: string | undefined;
  /** `data.config` of the ConfigMap `istio-sidecar-injector`, or a single template. */
  readonly injectConfig?: string | undefined;
  /** `data.values` of the same. */
  readonly values?: string | undefined;
  /** An IstioOperator object, whose values and mesh config count more than those above. */
  readonly operator?: string | undefined;
  readonly revision?: string | undefined;
  readonly compliancePolicy?: string | undefined;
  readonly environment?: Readonly<Record<string, string>> | undefined;
}

/** The injector of an installation. Throws an `InjectionError`. */
export function injectorFrom(settings: InjectionSettings): Injector {
  const operator = settings.operator === undefined ? {} : operatorSpec(settings.operator);
  const mesh = operator.meshConfig ?? meshData(settings.meshConfig ?? "");
  const values =
    operator.values === undefined ? valuesData(settings.values) : overlaid(DEFAULT_VALUES, operator.values);
  const { revision = "", compliancePolicy = "", environment = {} } = settings;
  return injectorOf({
    config: settings.injectConfig === undefined ? stockConfig(values) : configData(settings.injectConfig),
    mesh: injectionMesh(mesh),
    values: injectionValues(values),
    revision: revision === "default" ? "" : revision,
    compliancePolicy,
    environment,
  });
}

/** Whether an IstioOperator, or none, says all of the mesh config. Throws an `InjectionError`. */
export function setsMeshConfig(operator: string | undefined): boolean {
  return operator !== undefined && operatorSpec(operator).meshConfig !== undefined;
}

/** What an installation without an injection configuration of its own has: values may add templates and selectors. */
export function stockConfig(values: unknown): InjectionConfig {
  const webhook = at(values, "sidecarInjectorWebhook");
  const policy = at(at(at(values, "global"), "proxy"), "autoInject");
  const config = isRecord(webhook) ? webhook : {};
  const read = parseInjectionConfig(
    JSON.stringify({ ...config, policy: typeof policy === "string" ? policy : "enabled" }),
  );
  return { ...read, templates: { ...STOCK_TEMPLATES, ...read.templates } };
}

/** A file without `templates` is a template itself. */
function configData(text: string): InjectionConfig {
  const { value } = readDocument(text);
  const templates = at(value, "templates");
  if (isRecord(templates) && Object.keys(templates).length > 0) return parseInjectionConfig(text);
  return { ...stockConfig({}), templates: { sidecar: text } };
}

function meshData(text: string): unknown {
  const { value, problems } = parseMeshConfig(text);
  const errors = problems.filter(({ severity }) => severity === "error");
  if (value === undefined || errors.length > 0)
    throw new InjectionError(
      `mesh config: ${errors.map(({ field, message }) => `${field} ${message}`.trim()).join("; ")}`,
    );
  return readDocument(text).value;
}

function valuesData(text: string | undefined): unknown {
  if (text === undefined) return DEFAULT_VALUES;
  const { value, error } = readDocument(text);
  if (error !== undefined) throw new InjectionError(`values: line ${error.line} ${error.message}`);
  if (!isRecord(value)) throw new InjectionError("values must be an object");
  return value;
}

function operatorSpec(text: string): { readonly values?: unknown; readonly meshConfig?: unknown } {
  const { value, error } = readDocument(text);
  if (error !== undefined) throw new InjectionError(`IstioOperator: line ${error.line} ${error.message}`);
  if (at(value, "kind") !== "IstioOperator") throw new InjectionError("the operator file holds no IstioOperator");
  const spec = at(value, "spec");
  const hub = at(spec, "hub");
  const tag = at(spec, "tag");
  const global = { ...(hub === undefined ? {} : { hub }), ...(tag === undefined ? {} : { tag }) };
  const meshConfig = at(spec, "meshConfig");
  return {
    values: overlaid(at(spec, "values") ?? {}, { global }),
    ...(meshConfig === undefined ? {} : { meshConfig: meshData(JSON.stringify(meshConfig)) }),
  };
}

function overlaid(below: unknown, given: unknown): unknown {
  if (!isRecord(below) || !isRecord(given)) return given;
  const entries = Object.entries(given).map(([key, value]) => [key, overlaid(at(below, key), value)] as const);
  return { ...below, ...Object.fromEntries(entries) };
}

function at(value: unknown, key: string): unknown {
  return isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}
