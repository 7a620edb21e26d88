/** TypeScript types of the kinds, as people write them, from their JSON Schemas. */
import { apiVersionsOf, type JsonSchema, jsonSchemaOfKind } from "#config/crd/json-schema.ts";
import type { Kind } from "#config/kinds/kind.ts";

const HEAD = `/**
 * Configuration written in TypeScript, checked by the compiler.
 *
 *     import { defineConfig, toYaml } from "mizzen/config";
 *
 *     const config = defineConfig({
 *       apiVersion: "networking.istio.io/v1",
 *       kind: "VirtualService",
 *       metadata: { name: "reviews", namespace: "default" },
 *       spec: { hosts: ["reviews"], http: [{ timeout: "5s", route: [{ destination: { host: "reviews" } }] }] },
 *     });
 *     process.stdout.write(toYaml(config));
 *
 * Made by \`node scripts/json-schemas.ts\` from the schemas that configuration is read by: change them there. This file is what
 * a program sees of the package: declarations alone, without an import. Kinds are as they are written: durations are texts such
 * as "10s", enums are names.
 */

/** The objects, as they are: what it is for is their type. */
export declare function defineConfig(...objects: readonly MeshObject[]): readonly MeshObject[];

/** What is wrong with the objects beyond their types, as the control plane would say it. */
export declare function checkConfig(objects: readonly MeshObject[]): readonly ConfigProblem[];

/** The objects as the text of a YAML file, each a document of its own. */
export declare function toYaml(objects: readonly MeshObject[]): string;

/** Something wrong with one object. */
export interface ConfigProblem {
  /** \`kind/namespace/name\` */
  readonly object: string;
  /** \`spec.http[0].timeout\`; empty for the object as a whole. */
  readonly field: string;
  readonly message: string;
  /** An error keeps the object out of the mesh; a warning does not. */
  readonly severity: "error" | "warning";
}

/** Labels, annotations and where an object belongs. */
export interface ObjectMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A duration as Go writes them: \`10s\`, \`1h30m\`, \`250ms\`. */
export type Duration = \`\${number}\${"ns" | "us" | "ms" | "s" | "m" | "h"}\${string}\` | "0";
`;

/** The text of the module. */
export function kindTypes(kinds: readonly Kind[]): string {
  const types = kinds.map((kind) => {
    const { properties } = jsonSchemaOfKind(kind);
    const { apiVersion: _, kind: __, metadata: ___, status: ____, ...own } = record(properties);
    const fields = Object.entries(own).map(([name, schema]) => field(name, schema, false, 1));
    const versions = apiVersionsOf(kind)
      .map((version) => JSON.stringify(version))
      .join(" | ");
    const head = `  readonly apiVersion: ${versions};\n  readonly kind: "${kind.name}";\n  readonly metadata: ObjectMetadata;`;
    return `/** ${apiVersionsOf(kind)[0]} ${kind.name}. */\nexport interface ${kind.name} {\n${head}\n${fields.join("\n")}\n}\n`;
  });
  const union = `/** Any object that the mesh reads. */\nexport type MeshObject =\n${kinds.map(({ name }) => `  | ${name}`).join("\n")};\n`;
  return [HEAD, ...types, union].join("\n");
}

function field(name: string, schema: unknown, isRequired: boolean, depth: number): string {
  const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
  return `${"  ".repeat(depth)}readonly ${key}${isRequired ? "" : "?"}: ${typeText(record(schema), depth)};`;
}

function typeText(schema: JsonSchema, depth: number): string {
  const { type, properties, items, additionalProperties, anyOf, format, required } = schema;
  if (Array.isArray(anyOf)) return enumText(anyOf);
  if (format === "go-duration") return "Duration";
  if (type === "array") return `readonly ${wrapped(typeText(record(items), depth))}[]`;
  if (properties !== undefined) {
    const needed: readonly unknown[] = Array.isArray(required) ? required : [];
    const lines = Object.entries(record(properties)).map(([name, one]) =>
      field(name, one, needed.includes(name), depth + 1),
    );
    const open = additionalProperties === false ? "" : `\n${"  ".repeat(depth + 1)}readonly [other: string]: unknown;`;
    return `{${lines.map((line) => `\n${line}`).join("")}${open}\n${"  ".repeat(depth)}}`;
  }
  if (type === "object") return mapText(additionalProperties, depth);
  return scalarText(type, schema);
}

function mapText(values: unknown, depth: number): string {
  const inner = typeof values === "object" && values !== null ? typeText(record(values), depth) : "unknown";
  return `Readonly<Record<string, ${inner}>>`;
}

/** Quoted numbers are read too, but nobody writes them on purpose. */
function scalarText(type: unknown, { pattern }: JsonSchema): string {
  if (Array.isArray(type)) return pattern === undefined ? "number | string" : "number";
  return type === "string" || type === "boolean" ? type : "unknown";
}

function enumText(choices: readonly unknown[]): string {
  const names = choices.flatMap((choice) => {
    const { enum: list } = record(choice);
    return Array.isArray(list) ? list.map((name) => JSON.stringify(name)) : [];
  });
  return names.join(" | ");
}

function wrapped(type: string): string {
  return /^"|^number \| /.test(type) && type.includes("|") ? `(${type})` : type;
}

function record(value: unknown): JsonSchema {
  return typeof value === "object" && value !== null ? { ...value } : {};
}
