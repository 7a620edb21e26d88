/** What injection works with: the configuration of an installation, read and checked once. */
import { compileTemplate, type Template } from "@mizzen/go-template/template";
import { TemplateError } from "@mizzen/go-template/template-error";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";
import type { LabelSelector } from "#model/labels/label-selector.ts";
import type { InjectionMesh } from "../mesh/injection-mesh.ts";
import type { InjectionPolicy } from "../pod/decision.ts";
import { InjectionError } from "./injection-error.ts";
import { templateFunctions } from "./template-functions.ts";
import type { InjectionValues } from "./values.ts";

/** `data.config` of the ConfigMap `istio-sidecar-injector`. */
export interface InjectionConfig extends InjectionPolicy {
  /** For pods that name none. */
  readonly defaultTemplates: readonly string[];
  /** Names that stand for several templates. */
  readonly aliases: Readonly<Record<string, readonly string[]>>;
  /** Texts by name. */
  readonly templates: Readonly<Record<string, string>>;
  readonly injectedAnnotations: Readonly<Record<string, string>>;
}

/** Everything but the pod. */
export interface Injector extends Omit<InjectionConfig, "templates"> {
  readonly templates: ReadonlyMap<string, Template>;
  /** As they were written, for those who look. */
  readonly templateTexts: InjectionConfig["templates"];
  readonly mesh: InjectionMesh;
  readonly values: InjectionValues;
  /** Empty is the default revision. */
  readonly revision: string;
  /** COMPLIANCE_POLICY of the control plane. */
  readonly compliancePolicy: string;
}

/** The parts of an injector. */
export interface InjectorInput {
  readonly config: InjectionConfig;
  readonly mesh: InjectionMesh;
  readonly values: InjectionValues;
  readonly revision: string;
  readonly compliancePolicy?: string;
  /** What templates get from `env`. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Compiles all templates. Throws an `InjectionError` that names the template and its line. */
export function injectorOf(input: InjectorInput): Injector {
  const { config, mesh, values, revision, compliancePolicy = "", environment = {} } = input;
  const functions = templateFunctions(environment);
  const templates = new Map<string, Template>();
  for (const [name, source] of Object.entries(config.templates)) {
    try {
      templates.set(name, compileTemplate(source, { name: "inject", functions }));
    } catch (thrown) {
      if (!(thrown instanceof TemplateError)) throw thrown;
      throw new InjectionError(`template "${name}" cannot be read: ${thrown.message}`);
    }
  }
  return { ...config, templates, templateTexts: config.templates, mesh, values, revision, compliancePolicy };
}

const DEFAULT_TEMPLATE = "sidecar";

/** Reads the configuration from YAML. Throws an `InjectionError`. */
export function parseInjectionConfig(text: string): InjectionConfig {
  const { value, error } = readDocument(text);
  if (error !== undefined) throw new InjectionError(`injection configuration ${error.message} at line ${error.line}`);
  if (!isRecord(value)) throw new InjectionError("injection configuration must be an object");
  const defaultTemplates = texts(value.defaultTemplates, "defaultTemplates");
  return {
    policy: typeof value.policy === "string" ? value.policy : "",
    defaultTemplates: defaultTemplates.length === 0 ? [DEFAULT_TEMPLATE] : defaultTemplates,
    aliases: aliasesOf(value.aliases),
    templates: textsByName(value.templates, "templates"),
    injectedAnnotations: textsByName(value.injectedAnnotations, "injectedAnnotations"),
    neverInjectSelector: selectors(value.neverInjectSelector, "neverInjectSelector"),
    alwaysInjectSelector: selectors(value.alwaysInjectSelector, "alwaysInjectSelector"),
  };
}

function texts(value: unknown, field: string): readonly string[] {
  if (value === undefined || value === null) return [];
  const items = Array.isArray(value) ? value.map(textOf) : [undefined];
  if (items.every((item) => item !== undefined)) return items;
  throw new InjectionError(`${field} of the injection configuration must be a list of names`);
}

function textsByName(value: unknown, field: string): Readonly<Record<string, string>> {
  if (value === undefined || value === null) return {};
  if (!isRecord(value)) throw notTexts(field);
  const entries = Object.entries(value).map(([name, item]) => {
    const text = textOf(item);
    if (text === undefined) throw notTexts(field);
    return [name, text] as const;
  });
  return Object.fromEntries(entries);
}

function notTexts(field: string): InjectionError {
  return new InjectionError(`${field} of the injection configuration must be texts by name`);
}

/** Numbers and booleans are text where text is wanted, as YAML readers of Kubernetes take them: `safe-to-evict: true`. */
function textOf(value: unknown): string | undefined {
  if (value === null) return "";
  return ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined;
}

function aliasesOf(value: unknown): Readonly<Record<string, readonly string[]>> {
  if (!isRecord(value)) return {};
  return Object.fromEntries(Object.entries(value).map(([name, list]) => [name, texts(list, `aliases.${name}`)]));
}

function selectors(value: unknown, field: string): readonly LabelSelector[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every(isRecord)) return value;
  throw new InjectionError(`${field} of the injection configuration must be a list of label selectors`);
}
