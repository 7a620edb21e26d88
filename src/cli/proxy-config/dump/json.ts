/** Looking into JSON whose shape is known from a protocol, without trusting it. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { dump } from "js-yaml";

/** The value at a path of fields; undefined where there is none. */
export function at(value: JsonValue | undefined, ...path: readonly string[]): JsonValue | undefined {
  let found: JsonValue | undefined = value;
  for (const field of path) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) return undefined;
    found = found[field];
  }
  return found;
}

/** The text at a path; empty where there is none. */
export function textAt(value: JsonValue | undefined, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

/** The number at a path; 0 where there is none. */
export function numberAt(value: JsonValue | undefined, ...path: readonly string[]): number {
  const found = at(value, ...path);
  return typeof found === "number" ? found : 0;
}

/** The objects of the list at a path. */
export function listAt(value: JsonValue | undefined, ...path: readonly string[]): readonly JsonObject[] {
  const found = at(value, ...path);
  if (!Array.isArray(found)) return [];
  return found.filter((item): item is JsonObject => typeof item === "object" && item !== null && !Array.isArray(item));
}

/** The texts of the list at a path. */
export function textsAt(value: JsonValue | undefined, ...path: readonly string[]): readonly string[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter((item) => typeof item === "string") : [];
}

/** The object at a path, in a list of one; an empty list where there is none. */
export function objectAt(value: JsonValue | undefined, ...path: readonly string[]): readonly JsonObject[] {
  const found = at(value, ...path);
  return typeof found === "object" && found !== null && !Array.isArray(found) ? [found] : [];
}

/** As istioctl writes it: four spaces, or YAML with sorted keys. */
export function formatDump(value: JsonValue, format: "json" | "yaml"): string {
  if (format === "json") return `${JSON.stringify(value, undefined, 4)}\n`;
  return dump(value, { noRefs: true, sortKeys: true, seqNoIndent: true, lineWidth: -1 });
}
