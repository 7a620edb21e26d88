/** Delegates that VirtualServices name in vain: their routes lead nowhere. */

import { isOfKind } from "#config/kinds/kind.ts";
import { delegateName, delegateProblem } from "#config/kinds/virtual-service/delegate.ts";
import { virtualServiceKind } from "#config/kinds/virtual-service/kind.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";

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
  const all = objects.filter(isOfKind(virtualServiceKind));
  return {
    byName: new Map(all.map((routes) => [`${routes.metadata.namespace}/${routes.metadata.name}`, routes])),
    exportTo,
  };
}

/** What is wrong with the delegates that a VirtualService names, one text for each. */
export function delegateProblems({ metadata, spec }: Routes, { byName, exportTo }: KnownDelegates): readonly string[] {
  const { namespace } = metadata;
  const texts = (spec.http ?? []).flatMap((route) => {
    const name = delegateName(route, namespace);
    if (name === undefined) return [];
    const problem = delegateProblem(byName.get(name), { namespace, fallback: exportTo });
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
