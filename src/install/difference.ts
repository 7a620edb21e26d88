/** What differs between two sets of objects: object by object, as a patch of their YAML forms. */
import { dump } from "js-yaml";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { unifiedHunks } from "#lib/text/line-diff.ts";

/** One object that is not the same in both. */
export interface ObjectChange {
  readonly change: "added" | "removed" | "changed";
  /** `Kind/namespace/name`. */
  readonly name: string;
  /** A unified diff. */
  readonly patch: string;
}

/** In the order of the objects; those that stay the same are left out. */
export function objectChanges(before: readonly RawObject[], after: readonly RawObject[]): readonly ObjectChange[] {
  const [old, now] = [before, after].map((objects) => new Map(objects.map((object) => [objectName(object), object])));
  const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
  return [...names].flatMap((name) => {
    const [was, is] = [old?.get(name), now?.get(name)];
    const patch = unifiedHunks(linesOf(was), linesOf(is));
    if (patch === "") return [];
    return [{ change: was === undefined ? "added" : is === undefined ? "removed" : "changed", name, patch } as const];
  });
}

/** For a person to read, with a summary at the end. */
export function formatObjectChanges(changes: readonly ObjectChange[]): string {
  const count = (kind: ObjectChange["change"]) => changes.filter(({ change }) => change === kind).length;
  const sections = changes.map(({ change, name, patch }) => `${change}: ${name}\n${patch}\n`);
  return `${sections.join("")}${count("added")} added, ${count("changed")} changed, ${count("removed")} removed\n`;
}

/** How people call an object. */
export function objectName({ kind, metadata }: RawObject): string {
  return [kind, metadata.namespace, metadata.name].filter((part) => part !== undefined).join("/");
}

function linesOf(object: RawObject | undefined): readonly string[] {
  return object === undefined ? [] : dump(object, { noRefs: true, sortKeys: true }).trimEnd().split("\n");
}
