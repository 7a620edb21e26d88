/** Differences as a JSON patch (RFC 6902), which is how a webhook answers. */
import { isDeepStrictEqual } from "node:util";
import { isRecord } from "#lib/json/is-record.ts";

/** One change. */
export interface PatchOperation {
  readonly op: "add" | "remove" | "replace";
  /** A JSON pointer. */
  readonly path: string;
  readonly value?: unknown;
}

/** What turns one value into the other, applied in order. */
export function jsonPatch(before: unknown, after: unknown, at = ""): readonly PatchOperation[] {
  if (before === after) return [];
  if (Array.isArray(before) && Array.isArray(after)) return listPatch(before, after, at);
  if (isRecord(before) && isRecord(after)) return objectPatch(before, after, at);
  return [{ op: "replace", path: at, value: after }];
}

function objectPatch(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  at: string,
): readonly PatchOperation[] {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return keys.flatMap((key): readonly PatchOperation[] => {
    const path = `${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!Object.hasOwn(after, key)) return [{ op: "remove", path }];
    if (!Object.hasOwn(before, key)) return [{ op: "add", path, value: after[key] }];
    return jsonPatch(before[key], after[key], path);
  });
}

/** Items at the same place are compared; injection mostly adds at an end, so what both ends share stays untouched. */
function listPatch(before: readonly unknown[], after: readonly unknown[], at: string): readonly PatchOperation[] {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && isDeepStrictEqual(before[start], after[start])) start++;
  let end = 0;
  while (end < shorter - start && isDeepStrictEqual(before.at(-1 - end), after.at(-1 - end))) end++;
  const [old, fresh] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const both = Math.min(old.length, fresh.length);
  return [
    ...old.slice(0, both).flatMap((item, index) => jsonPatch(item, fresh[index], `${at}/${start + index}`)),
    // From the end, so that places before it stay what they are.
    ...old.slice(both).map((_, index) => ({ op: "remove" as const, path: `${at}/${start + old.length - 1 - index}` })),
    ...fresh.slice(both).map((value, index) => ({ op: "add" as const, path: `${at}/${start + both + index}`, value })),
  ];
}
