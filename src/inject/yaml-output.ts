/** Objects as YAML in the style of Kubernetes' tools: keys sorted, lists at the indent of their key, quotes where needed. */
import { isRecord } from "#lib/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";

/** With a line end. */
export function formatYaml(value: unknown): string {
  return isEmpty(value) || typeof value !== "object" || value === null ? `${scalar(value, 0)}\n` : block(value, 0);
}

function block(value: unknown, indent: number): string {
  const margin = " ".repeat(indent);
  if (Array.isArray(value)) return value.map((item: unknown) => `${margin}- ${listItem(item, indent)}`).join("");
  if (!isRecord(value)) return "";
  const keys = Object.keys(value).sort();
  return keys.map((key) => `${margin}${keyText(key)}:${fieldValue(value[key], indent)}`).join("");
}

/** A key stands on one line. */
function keyText(key: string): string {
  return key.includes("\n") ? JSON.stringify(key) : textScalar(key, 0);
}

function fieldValue(value: unknown, indent: number): string {
  if (isEmpty(value) || typeof value !== "object" || value === null) return ` ${scalar(value, indent)}\n`;
  return `\n${block(value, Array.isArray(value) ? indent : indent + 2)}`;
}

/** The first line of an item stands behind its dash. */
function listItem(item: unknown, indent: number): string {
  if (isEmpty(item) || typeof item !== "object" || item === null) return `${scalar(item, indent)}\n`;
  return block(item, indent + 2).slice(indent + 2);
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) ? value.length === 0 : isRecord(value) && Object.keys(value).length === 0;
}

function scalar(value: unknown, indent: number): string {
  if (Array.isArray(value)) return "[]";
  if (isRecord(value)) return "{}";
  return typeof value === "string" ? textScalar(value, indent) : JSON.stringify(value ?? null);
}

function textScalar(text: string, indent: number): string {
  if (!isReadableLiteral(text)) return JSON.stringify(text);
  if (text.includes("\n")) return literal(text, indent);
  if (readsAsOther(text)) return JSON.stringify(text);
  return isPlain(text) ? text : `'${text.replaceAll("'", "''")}'`;
}

/** Letters that do not print, and spaces before a line end, need escapes. */
function isReadableLiteral(text: string): boolean {
  return !/[^\P{C}\n]|[\u2028\u2029\uFEFF]/u.test(text) && !/ \n| $/.test(text.includes("\n") ? text : "");
}

function literal(text: string, indent: number): string {
  const margin = " ".repeat(indent + 2);
  const hint = /^[ \n]/.test(text) ? "2" : "";
  const chomp = !text.endsWith("\n") ? "-" : /(^|\n)\n$/.test(text) ? "+" : "";
  const lines = text.replace(/\n$/, "").split("\n");
  return `|${hint}${chomp}\n${lines.map((line) => (line === "" ? "" : margin + line)).join("\n")}`;
}

/** What a reader would take for a number, a truth value, null or a time. */
function readsAsOther(text: string): boolean {
  if (text === "" || /^(~|<<|=|\d{4}-\d\d?-\d\d?([Tt ].*)?|[-+]?\d[\d_]*(:[0-5]?\d)+(\.\d*)?)$/.test(text)) return true;
  return /^[\w.+-]+$/.test(text) && typeof readDocument(text).value !== "string";
}

function isPlain(text: string): boolean {
  if (/^[#,[\]{}&*!|>'"%@`]|^[-?:](\s|$)|^---|^\.\.\.|^\s|\s$/.test(text)) return false;
  return !/:(\s|$)|\s#/.test(text);
}
