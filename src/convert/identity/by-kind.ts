/** Objects by kind, in their order. */
import type { ConfigObject } from "#config/schema/config-object.ts";
import { replacements, withReplacements } from "#lib/collections/list-changes.ts";

/** Lists of objects, each of one kind. */
export type ByKind = ReadonlyMap<string, readonly ConfigObject[]>;

const last = new WeakMap<object, { readonly objects: readonly ConfigObject[]; readonly byKind: ByKind }>();

/**
 * Mostly one object of thousands was replaced since the last time that `owner` asked: then the other kinds have the lists of
 * before, and no object but that one is looked at.
 */
export function objectsByKind(owner: object, objects: readonly ConfigObject[]): ByKind {
  const known = last.get(owner);
  const byKind = (known && afterReplacements(known, objects)) ?? Map.groupBy(objects, ({ kind }) => kind);
  last.set(owner, { objects, byKind });
  return byKind;
}

function afterReplacements(
  { objects: before, byKind }: { readonly objects: readonly ConfigObject[]; readonly byKind: ByKind },
  objects: readonly ConfigObject[],
): ByKind | undefined {
  const replaced = replacements(before, objects);
  if (replaced === undefined || replaced.some(([old, next]) => old.kind !== next.kind)) return undefined;
  const after = new Map(byKind);
  for (const [kind, own] of Map.groupBy(replaced, ([{ kind }]) => kind)) {
    const list = withReplacements(after.get(kind) ?? [], own);
    if (list === undefined) return undefined;
    after.set(kind, list);
  }
  return after;
}
