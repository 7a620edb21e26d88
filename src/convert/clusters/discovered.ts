/** `discoverySelectors`: the namespaces whose objects the mesh knows of at all. */

import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { type LabelSelector, matchesSelector } from "#model/labels/label-selector.ts";
import type { Labels } from "#model/labels/labels.ts";

const NAME_LABEL = "kubernetes.io/metadata.name";

/** The objects of the namespaces that the mesh config selects; all of them where it selects none, or makes no sense. */
export function discovered(objects: readonly ConfigObject[], mesh: MeshConfig): readonly ConfigObject[] {
  const { discoverySelectors: selectors = [] } = mesh;
  if (selectors.length === 0 || selectors.some((selector) => matchesSelector(selector, {}) === undefined))
    return objects;
  const labels = new Map<string, Labels>(
    objects.filter(({ kind }) => kind === "Namespace").map(({ metadata }) => [metadata.name, metadata.labels]),
  );
  const isSelected = selectionOf(selectors, labels);
  return objects.filter(({ kind, metadata }) => {
    if (kind === "Node") return true;
    return isSelected(kind === "Namespace" ? metadata.name : metadata.namespace);
  });
}

/** Whether the mesh config selects a namespace. */
export function isDiscovered(namespace: { readonly name: string; readonly labels: Labels }, mesh: MeshConfig): boolean {
  const { discoverySelectors: selectors = [] } = mesh;
  if (selectors.length === 0 || selectors.some((selector) => matchesSelector(selector, {}) === undefined)) return true;
  return selectionOf(selectors, new Map([[namespace.name, namespace.labels]]))(namespace.name);
}

/** A namespace that nobody described has the label that every namespace has. */
function selectionOf(
  selectors: readonly LabelSelector[],
  labels: ReadonlyMap<string, Labels>,
): (namespace: string) => boolean {
  const known = new Map<string, boolean>();
  return (namespace) => {
    const before = known.get(namespace);
    if (before !== undefined) return before;
    const own = { [NAME_LABEL]: namespace, ...labels.get(namespace) };
    const selected = selectors.some((selector) => matchesSelector(selector, own) === true);
    known.set(namespace, selected);
    return selected;
  };
}
