/** A VirtualService may leave the requests of a route to another one, its delegate: which one that is, and whether it may be. */
import type { ConfigObject } from "../../schema/config-object.ts";
import { isVisible } from "../../terms/visibility.ts";
import type { HttpRoute, VirtualService } from "./schema.ts";

type VirtualServiceObject = ConfigObject<VirtualService>;

/** `namespace/name` of the delegate that a route names, seen from the namespace of its VirtualService. */
export function delegateName({ delegate }: HttpRoute, namespace: string): string | undefined {
  return delegate && `${delegate.namespace || namespace}/${delegate.name ?? ""}`;
}

/** Whether it says itself what it is for. One that does not is a delegate, and nothing else. */
export function hasHosts({ spec }: VirtualServiceObject): boolean {
  return (spec.hosts ?? []).length > 0;
}

/** Why what a route names is not its delegate; undefined where it is. `fallback` is who sees one that does not say it itself. */
export function delegateProblem(
  named: VirtualServiceObject | undefined,
  root: { readonly namespace: string; readonly fallback: readonly string[] },
): string | undefined {
  if (named === undefined) return "does not exist";
  if (hasHosts(named)) return "has hosts of its own, so it is no delegate";
  if (isVisible(named.spec.exportTo, { home: named.metadata.namespace, ...root })) return undefined;
  return `is not exported to namespace "${root.namespace}"`;
}
