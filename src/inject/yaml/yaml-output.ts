/** Objects as YAML in the style of Kubernetes' tools: keys sorted, lists at the indent of their key, quotes where needed. */
import { isRecord } from "#lib/json/is-record.ts";
import { compareKeys } from "./yaml-keys.ts";
import { keyText, textScalar } from "./yaml-scalar.ts";

/** With a line end. */
export function formatYaml(value: unknown): string {
  return isScalar(value) ? `${scalar(value, { column: 0, indent: 0 })}\n` : block(value, 0);
}

function block(value: unknown, indent: number): string {
  const margin = " ".repeat(indent);
  if (Array.isArray(value)) return value.map((item: unknown) => `${margin}- ${listItem(item, indent)}`).join("");
  if (!isRecord(value)) return "";
  const keys = Object.keys(value).sort(compareKeys);
  return keys.map((key) => margin + field(keyText(key), value[key], indent)).join("");
}

function field(key: string, value: unknown, indent: number): string {
  if (!isScalar(value)) return `${key}:\n${block(value, Array.isArray(value) ? indent : indent + 2)}`;
  return `${key}: ${scalar(value, { column: indent + key.length + 2, indent: indent + 2 })}\n`;
}

/** The first line of an item stands behind its dash. */
function listItem(item: unknown, indent: number): string {
  if (!isScalar(item)) return block(item, indent + 2).slice(indent + 2);
  return `${scalar(item, { column: indent + 2, indent: indent + 2 })}\n`;
}

/** What stands behind its key: texts, numbers, and what is empty. */
function isScalar(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return !isRecord(value) || Object.keys(value).length === 0;
}

function scalar(value: unknown, at: Parameters<typeof textScalar>[1]): string {
  if (Array.isArray(value)) return "[]";
  if (isRecord(value)) return "{}";
  return typeof value === "string" ? textScalar(value, at) : JSON.stringify(value ?? null);
}
