/** Kinds of objects as the API server names them in paths. */

export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Where an object, a collection or a part of an object is. */
export interface Place {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/** The path of a collection in all namespaces or in one, of an object in it, or of a part of that object. */
export function pathOf({ group, version, plural, namespaced }: ResourceType, place: Place = {}): string {
  const { namespace, name, subresource } = place;
  const root = group === "" ? ["api", version] : ["apis", group, version];
  const inNamespace = namespaced && namespace !== undefined ? ["namespaces", namespace] : [];
  const parts = [...root, ...inNamespace, plural, name, subresource].filter((part) => part !== undefined);
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/** `apiVersion` as objects of the type have it. */
export function apiVersionOf({ group, version }: ResourceType): string {
  return group === "" ? version : `${group}/${version}`;
}

/** `virtualservices.networking.istio.io`, as RBAC and people name the type. */
export function resourceName({ group, plural }: ResourceType): string {
  return group === "" ? plural : `${plural}.${group}`;
}
