/**
 * Numbers and booleans become text where Kubernetes takes nothing else: in labels, annotations, selectors and variables. `--set`
 * has no way to say that `true` is meant as text, and the API server would refuse the object when others are applied already.
 */
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";

/** Fields that map names to texts. */
const TEXT_MAPS: ReadonlySet<string> = new Set(["labels", "annotations", "nodeSelector", "selector", "matchLabels"]);

/** The object with texts in such places. */
export function withTexts(object: RawObject): RawObject {
  // Definitions of kinds describe fields of these names, and hold none.
  return object.kind === "CustomResourceDefinition" ? object : (texts(object) as RawObject);
}

function texts(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(texts);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, textsAt(name, item)]));
}

function textsAt(name: string, value: unknown): unknown {
  const inner = texts(value);
  if (isRecord(inner) && TEXT_MAPS.has(name)) {
    return Object.fromEntries(Object.entries(inner).map(([key, item]) => [key, asText(item)]));
  }
  if (Array.isArray(inner) && name === "env") {
    return inner.map((item) => (isRecord(item) && "value" in item ? { ...item, value: asText(item.value) } : item));
  }
  return inner;
}

function asText(value: unknown): unknown {
  return typeof value === "number" || typeof value === "boolean" ? String(value) : value;
}
