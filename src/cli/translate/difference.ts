/** What would change for a proxy between two translations: resource by resource, in words and as a patch. */
import type { JsonValue } from "@bufbuild/protobuf";
import { dump } from "js-yaml";
import type { Style } from "#lib/print/style.ts";
import { unifiedHunks } from "#lib/text/line-diff.ts";
import { shortTypeName } from "#protocol/messages/type-urls.ts";
import type { TranslatedResource } from "./resources.ts";

export interface ResourceChange {
  readonly change: "added" | "removed" | "changed";
  /** `cds`, `lds`, ... */
  readonly type: string;
  readonly name: string;
  /** One sentence for each field. */
  readonly words: readonly string[];
  /** A unified diff of the YAML forms. */
  readonly patch: string;
}

/** More than anybody reads; the patch has them all. */
const MAX_WORDS = 20;
const MAX_VALUE = 120;

/** In the order of the resources; those that stay the same are left out. */
export function resourceChanges(
  before: readonly TranslatedResource[],
  after: readonly TranslatedResource[],
): readonly ResourceChange[] {
  const keyOf = ({ typeUrl, name }: TranslatedResource) => `${typeUrl} ${name}`;
  const old = new Map(before.map((resource) => [keyOf(resource), resource]));
  const kept = new Set(after.map(keyOf));
  return [
    ...before.filter((resource) => !kept.has(keyOf(resource))).map((resource) => changeOf(resource, undefined)),
    ...after.flatMap((resource) => {
      const was = old.get(keyOf(resource));
      const isSame = was !== undefined && JSON.stringify(was.json) === JSON.stringify(resource.json);
      return isSame ? [] : [changeOf(was, resource)];
    }),
  ];
}

/** The changes for a person to read, with a summary at the end. */
export function formatChanges(
  changes: readonly ResourceChange[],
  { folders, style }: { readonly folders: readonly [string, string]; readonly style: Style },
): string {
  const sections = changes.map(({ change, type, name, words, patch }) => {
    const title = `${change}: ${type} ${name === "" ? "(the table of names)" : name}`;
    const lines = words.map((line) => `  ${line}\n`).join("");
    const [from, to] = folders.map((folder) => `${folder}/${type}/${name}`);
    const files = `--- ${change === "added" ? "/dev/null" : from}\n+++ ${change === "removed" ? "/dev/null" : to}\n`;
    return `${title}\n${lines}${files}${coloured(patch, style)}\n`;
  });
  const count = (kind: ResourceChange["change"]) => changes.filter(({ change }) => change === kind).length;
  return `${sections.join("")}${count("added")} added, ${count("changed")} changed, ${count("removed")} removed\n`;
}

function coloured(patch: string, style: Style): string {
  const paint = (line: string) =>
    line.startsWith("-") ? style.bad(line) : line.startsWith("+") ? style.good(line) : line;
  return patch.split("\n").map(paint).join("\n");
}

function changeOf(before: TranslatedResource | undefined, after: TranslatedResource | undefined): ResourceChange {
  const some = after ?? before;
  const change = before === undefined ? "added" : after === undefined ? "removed" : "changed";
  const words = before !== undefined && after !== undefined ? fieldChanges(before.json, after.json, "") : [];
  const more = words.length - MAX_WORDS;
  return {
    change,
    type: shortTypeName(some?.typeUrl ?? ""),
    name: some?.name ?? "",
    words: more > 0 ? [...words.slice(0, MAX_WORDS), `and ${more} more`] : words,
    patch: unifiedHunks(linesOf(before), linesOf(after)),
  };
}

function linesOf(resource: TranslatedResource | undefined): readonly string[] {
  if (resource === undefined) return [];
  return dump(resource.json, { noRefs: true, lineWidth: -1 }).split("\n").slice(0, -1);
}

function fieldChanges(before: JsonValue | undefined, after: JsonValue | undefined, path: string): readonly string[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  const byName = hasNames(before) && hasNames(after);
  const old = entriesOf(before, byName);
  const now = entriesOf(after, byName);
  if (old === undefined || now === undefined || Array.isArray(before) !== Array.isArray(after)) {
    if (before === undefined) return [`${path} is new: ${shown(after)}`];
    if (after === undefined) return [`${path} is gone, it was ${shown(before)}`];
    return [`${path} is ${shown(after)}, it was ${shown(before)}`];
  }
  const keys = [...new Set([...old.keys(), ...now.keys()])];
  const inner = keys.flatMap((key) => fieldChanges(old.get(key), now.get(key), joined(path, key)));
  const isMoved = Array.isArray(before) && orderOf(old, now) !== orderOf(now, old);
  return isMoved ? [...inner, `${path} is in another order`] : inner;
}

/** The keys of a list that the other has too, as they stand. */
function orderOf(entries: ReadonlyMap<string, unknown>, other: ReadonlyMap<string, unknown>): string {
  return [...entries.keys()].filter((key) => other.has(key)).join("\n");
}

/** Fields by name; items of lists by their own name where each of them has one, else by their place. */
function entriesOf(value: JsonValue | undefined, byName: boolean): ReadonlyMap<string, JsonValue> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!Array.isArray(value)) return new Map(Object.entries(value).map(([key, inner]) => [key, inner]));
  return new Map(value.map((item, i) => [`[${byName ? nameOf(item) : i}]`, item]));
}

function hasNames(value: JsonValue | undefined): boolean {
  if (!Array.isArray(value)) return false;
  const names = new Set(value.map(nameOf));
  return names.size === value.length && !names.has(undefined);
}

function nameOf(item: JsonValue): string | undefined {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return undefined;
  return typeof item.name === "string" && item.name !== "" ? item.name : undefined;
}

function joined(path: string, key: string): string {
  if (key.startsWith("[")) return path + key;
  const name = /^[\w@-]+$/.test(key) ? key : JSON.stringify(key);
  return path === "" ? name : `${path}.${name}`;
}

function shown(value: JsonValue | undefined): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}...` : text;
}
