/**
 * A change of one field of an object, by a path as overlays of an IstioOperator have it: `spec.containers.[name:a].args[0]`. `\\.`
 * is a dot in a name; of a list `[1]` is an item, `[-1]` a new one, `[name:a]` the item with that name, and `[text]` or `[:text]`
 * an item that this regular expression matches.
 */
import { RE2JS } from "re2js";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocument } from "#lib/yaml/read.ts";
import type { Values } from "./values.ts";

/** A path that leads nowhere. */
export class OverlayError extends Error {}

/** The object with `value` at the path; null takes away what is there. Throws an `OverlayError`. */
export function overlayPatched(object: Values, path: string, value: unknown): Values {
  const steps = stepsOf(path);
  if (steps.length === 0) throw new OverlayError(`path "${path}" is empty`);
  const meant = meaningOf(value);
  const changed = changedAt(object, steps, { path, value: meant });
  return isRecord(changed) ? changed : object;
}

interface Change {
  readonly path: string;
  readonly value: unknown;
}

function stepsOf(path: string): readonly string[] {
  return path
    .split(/(?<!\\)\./)
    .flatMap((part) => /^([^[]+)(\[.*)$/.exec(part)?.slice(1) ?? [part])
    .filter((part) => part !== "")
    .map((part) => part.replaceAll("\\.", "."));
}

function changedAt(node: unknown, [step, ...rest]: readonly string[], change: Change): unknown {
  if (step === undefined) return change.value;
  const item = /^\[(.*)\]$/s.exec(step)?.[1];
  if (item !== undefined && (node === undefined || Array.isArray(node))) {
    return changedItem(node ?? [], { item, rest }, change);
  }
  if (node !== undefined && !isRecord(node)) {
    throw new OverlayError(`path "${change.path}": there is nothing under "${step}", what is before it is no object`);
  }
  const before = node ?? {};
  const value = changedAt(Object.hasOwn(before, step) ? before[step] : undefined, rest, change);
  if (value !== null) return { ...before, [step]: value };
  return Object.fromEntries(Object.entries(before).filter(([name]) => name !== step));
}

interface ItemStep {
  readonly item: string;
  readonly rest: readonly string[];
}

function changedItem(list: readonly unknown[], { item, rest }: ItemStep, change: Change): readonly unknown[] {
  const found = placeOf(list, item);
  if (found === undefined) throw new OverlayError(`path "${change.path}": the list has no item [${item}]`);
  const value = changedAt(list[found], rest, change);
  if (found >= list.length) return value === null ? list : [...list, value];
  return list.flatMap((one, i) => (i !== found ? [one] : value === null ? [] : [value]));
}

/** Undefined when there is no such item. */
function placeOf(list: readonly unknown[], item: string): number | undefined {
  if (/^(-1|\d+)$/.test(item)) {
    const index = Number(item);
    return index < 0 || index >= list.length ? list.length : index;
  }
  const [, key = "", wanted = ""] = /^([^:]+):(.+)$/s.exec(item) ?? [];
  const pattern = item.replace(/^:/, "");
  const at = list.findIndex((one) =>
    isRecord(one) ? key !== "" && String(one[key]) === wanted : isMatch(pattern, String(one)),
  );
  return at < 0 ? undefined : at;
}

function isMatch(pattern: string, text: string): boolean {
  try {
    return RE2JS.compile(pattern).matcher(text).find();
  } catch {
    // No regular expression: it matches nothing.
    return false;
  }
}

/** Text that is a YAML object, but no JSON, is meant as one. */
function meaningOf(value: unknown): unknown {
  if (typeof value !== "string" || value.trimStart().startsWith("{")) return value;
  if (!value.includes(value.includes("\n") ? ":" : ": ")) return value;
  const { value: read, error } = readDocument(value);
  return error === undefined && isRecord(read) ? read : value;
}
