/** Delegates that VirtualServices name in vain: their routes lead nowhere. */
import { type ConfigObject, objectKey } from "#config/config-object.ts";
import type { VirtualService } from "#config/kinds/virtual-service.ts";
import { isVisible } from "#config/visibility.ts";

type Routes = ConfigObject<VirtualService>;

/** What delegates are looked for among. */
export interface KnownDelegates {
  /** By `namespace/name`. */
  readonly byName: ReadonlyMap<string, Routes>;
  /** Who sees a VirtualService that does not say it itself. */
  readonly exportTo: readonly string[];
}

/** The VirtualServices among objects, by name. */
export function knownDelegates(objects: readonly ConfigObject[], exportTo: readonly string[]): KnownDelegates {
  const all = objects.filter(({ kind }) => kind === "VirtualService") as readonly Routes[];
  return { byName: new Map(all.map((routes) => [nameOf(routes.metadata), routes])), exportTo };
}

/** What is wrong with the delegates that a VirtualService names, one text for each. */
export function delegateProblems({ metadata, spec }: Routes, { byName, exportTo }: KnownDelegates): readonly string[] {
  const { namespace } = metadata;
  const texts = (spec.http ?? []).flatMap(({ delegate }) => {
    if (delegate === undefined) return [];
    const name = nameOf({ name: delegate.name ?? "", namespace: delegate.namespace || namespace });
    const problem = problemOf(byName.get(name), { namespace, fallback: exportTo });
    return problem === undefined ? [] : [`delegate "${name}" ${problem}`];
  });
  return [...new Set(texts)];
}

/** The same for all that are in use, where a delegate that counts is part of the one that names it. */
export function unresolvedDelegates(
  inUse: readonly Routes[],
  objects: readonly ConfigObject[],
  exportTo: readonly string[],
): readonly string[] {
  const roots = inUse.filter(({ spec }) => spec.http?.some(({ delegate }) => delegate !== undefined));
  if (roots.length === 0) return [];
  const known = knownDelegates(objects, exportTo);
  return roots.flatMap((root) => delegateProblems(root, known).map((text) => `${objectKey(root)}: ${text}`));
}

function problemOf(
  delegate: Routes | undefined,
  seenFrom: { readonly namespace: string; readonly fallback: readonly string[] },
): string | undefined {
  if (delegate === undefined) return "does not exist";
  const { spec, metadata } = delegate;
  if ((spec.hosts ?? []).length > 0) return "has hosts of its own, so it is no delegate";
  if (isVisible(spec.exportTo, { home: metadata.namespace, ...seenFrom })) return undefined;
  return `is not exported to namespace "${seenFrom.namespace}"`;
}

function nameOf({ namespace, name }: { readonly namespace: string; readonly name: string }): string {
  return `${namespace}/${name}`;
}
