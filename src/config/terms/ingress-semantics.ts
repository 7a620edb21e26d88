/** A mark on virtual services that were made of Ingresses: there a prefix ends at a slash, `/a` takes `/a/b`, but not `/ab`. */
import type { ConfigObject } from "../schema/config-object.ts";

const ROUTE_SEMANTICS = "internal.istio.io/route-semantics";

/** Annotations with the mark. */
export const INGRESS_SEMANTICS: Readonly<Record<string, string>> = { [ROUTE_SEMANTICS]: "ingress" };

/** Whether an object has the mark. */
export function hasIngressSemantics({ metadata }: ConfigObject): boolean {
  return metadata.annotations[ROUTE_SEMANTICS] === INGRESS_SEMANTICS[ROUTE_SEMANTICS];
}
