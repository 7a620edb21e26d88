/** A chart in Helm's form, rendered by our own template engine: the same files serve `helm install` and `mizzen install`. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SPRIG_FUNCTIONS } from "@mizzen/go-template/sprig";
import { compileTemplate, type Template } from "@mizzen/go-template/template";
import { CallError, TemplateError } from "@mizzen/go-template/template-error";
import { type Callable, Struct, toValue, type Value } from "@mizzen/go-template/value";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { readDocument, readDocuments } from "#lib/yaml/read.ts";
import type { Values } from "./values/values.ts";

/** The files of a chart. */
export interface Chart {
  /** `Chart.yaml`. */
  readonly about: Values;
  readonly values: Values;
  /** Source by file name. */
  readonly templates: ReadonlyMap<string, string>;
  /** Texts that templates take over as they are, by path. */
  readonly files: ReadonlyMap<string, string>;
}

/** What an installation is called, and where it is. */
export interface Release {
  readonly name: string;
  readonly namespace: string;
}

/** Reads a folder with `Chart.yaml`, `values.yaml`, `templates/` and `files/`. */
export async function readChart(folder: string): Promise<Chart> {
  const files = await textsIn(join(folder, "files"));
  return {
    about: await readYaml(join(folder, "Chart.yaml")),
    values: await readYaml(join(folder, "values.yaml")),
    templates: await textsIn(join(folder, "templates")),
    files: new Map([...files].map(([name, text]) => [`files/${name}`, text])),
  };
}

async function textsIn(folder: string): Promise<ReadonlyMap<string, string>> {
  const names = await namesIn(folder);
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), "utf8")] as const)),
  );
}

/** The names of the files in a folder of a chart, sorted. Throws a MeshError that names the folder. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return (await readdir(folder)).sort();
  } catch (cause) {
    throw new MeshError("INSTALL_INVALID", `${folder} cannot be read, so there is no chart with profiles`, { cause });
  }
}

/** The YAML object in a file. Throws a MeshError that names it and the line. */
export async function readYaml(file: string): Promise<Values> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("INSTALL_INVALID", `${file} cannot be read`, { cause });
  }
  const { value, error } = readDocument(text);
  if (error !== undefined) throw new MeshError("INSTALL_INVALID", `${file}:${error.line}: ${error.message}`);
  if (value !== undefined && value !== null && !isRecord(value)) {
    throw new MeshError("INSTALL_INVALID", `${file} holds no settings`);
  }
  return value ?? {};
}

/** The objects that a chart gives for these values, in the order of its files. */
export function renderChart(chart: Chart, values: Values, release: Release): readonly RawObject[] {
  const helpers = [...chart.templates].filter(([name]) => name.endsWith(".tpl")).map(([, source]) => source);
  const data = toValue({
    Values: values,
    Chart: { Name: chart.about.name, Version: chart.about.version, AppVersion: chart.about.appVersion },
    Release: { Name: release.name, Namespace: release.namespace, Service: "Helm", IsInstall: true, IsUpgrade: false },
    Template: { BasePath: "templates" },
    Files: new Struct("files", { Get: (path) => chart.files.get(String(path)) ?? "" }),
  });
  const files = [...chart.templates].filter(([name]) => /\.ya?ml$/.test(name));
  return files.flatMap(([name, source]) => objectsOf(name, rendered(name, source, helpers, data)));
}

/** Helpers stand behind a file, so that lines in messages are those of the file. */
function rendered(name: string, source: string, helpers: readonly string[], data: Value): string {
  let includeNamed: Template["executeNamed"] = () => "";
  // What Helm has beyond Sprig.
  const functions: Record<string, Callable> = {
    ...SPRIG_FUNCTIONS,
    include: (named, value) => includeNamed(String(named), value),
    required: (message, value) => {
      if (value === undefined || value === null || value === "") throw new CallError(String(message));
      return value;
    },
    tpl: (text, value) => compileTemplate([String(text), ...helpers].join("\n"), { name, functions }).execute(value),
    fromYaml: (text) => {
      const { value, error } = readDocument(String(text));
      if (error !== undefined) throw new CallError(`line ${error.line}: ${error.message}`);
      return toValue(value ?? {});
    },
    lookup: () => ({}),
  };
  try {
    const template = compileTemplate([source, ...helpers].join("\n"), { name, functions });
    includeNamed = template.executeNamed;
    return template.execute(data);
  } catch (problem) {
    if (!(problem instanceof TemplateError)) throw problem;
    throw new MeshError("INSTALL_INVALID", `chart: ${problem.message}`, { cause: problem });
  }
}

/** All objects in the text of a file. Throws a MeshError that names it and the line. */
export function readObjects(text: string, file: string): readonly RawObject[] {
  return objectsOf(file, text, "");
}

function objectsOf(name: string, text: string, whose = "chart: "): readonly RawObject[] {
  return readDocuments(text).flatMap(({ value, error }) => {
    if (error !== undefined) {
      throw new MeshError("INSTALL_INVALID", `${whose}${name}:${error.line}: ${error.message}`);
    }
    return isRecord(value) && isRecord(value.metadata) ? [value as unknown as RawObject] : [];
  });
}
