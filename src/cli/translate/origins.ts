/** Where a resource comes from: the objects of the user's configuration that its recipe was made with. */

import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import type { Origin } from "#config/schema/problem.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import { referencesIn } from "./references.ts";
import type { TranslatedResource } from "./resources.ts";

/** An object that had a say. */
export interface NamedOrigin {
  /** `kind/namespace/name` */
  readonly object: string;
  readonly place: Origin | undefined;
}

/** Finds the objects behind a resource. */
export type OriginsOf = (resource: TranslatedResource) => readonly NamedOrigin[];

/** How deep a value of an input is looked into: a target of a port holds a service, which is made of objects. */
const DEPTH = 3;

/** For the resources of a snapshot that was made from these objects. */
export function originFinder(
  snapshot: Snapshot,
  objects: readonly ConfigObject[],
  resources: readonly TranslatedResource[],
): OriginsOf {
  const index = new ObjectIndex(snapshot, objects);
  const routes = new Map(resources.filter(({ typeUrl }) => typeUrl === ROUTE_TYPE).map((route) => [route.name, route]));
  const keysOf = ({ recipe, json }: TranslatedResource): ReadonlySet<string> => {
    const found = new Set<string>();
    const text = JSON.stringify(json);
    visitRecipe(recipe, (value) => index.note(value, text, found), found);
    return found;
  };
  return (resource) => {
    const own = keysOf(resource);
    // A listener that only leads to routes is there for the sake of what these are made of.
    const named = own.size > 0 ? [] : referencesIn([resource.json]).routes;
    const more = [...named].flatMap((name) => [...keysOf(routes.get(name) ?? resource)]);
    return [...new Set([...own, ...more])].sort().map((object) => ({ object, place: index.placeOf(object) }));
  };
}

/** Calls `note` with everything in the inputs; it answers whether that is to be looked into. */
function visitRecipe(recipe: Recipe, note: (value: object | string) => boolean, found: Set<string>): void {
  for (const origin of recipe.origins ?? []) found.add(origin);
  for (const value of Object.values(recipe.input)) visit(value, DEPTH, note);
  for (const part of recipe.parts?.recipes ?? []) visitRecipe(part, note, found);
}

function visit(value: unknown, depth: number, note: (value: object | string) => boolean): void {
  if (typeof value === "string") note(value);
  if (typeof value !== "object" || value === null || !note(value) || depth === 0) return;
  const inner = value instanceof Map || value instanceof Set ? value.values() : Object.values(value);
  for (const one of inner) visit(one, Array.isArray(value) ? depth : depth - 1, note);
}

class ObjectIndex {
  readonly #snapshot: Snapshot;
  readonly #byKey: ReadonlyMap<string, ConfigObject>;
  readonly #byHost: ReadonlyMap<string, readonly string[]>;

  constructor(snapshot: Snapshot, objects: readonly ConfigObject[]) {
    this.#snapshot = snapshot;
    this.#byKey = new Map(objects.map((object) => [objectKey(object), object]));
    const hosts = objects.flatMap((object) => hostsOf(object, snapshot.features.domain));
    this.#byHost = new Map(
      [...Map.groupBy(hosts, ([host]) => host)].map(([host, entries]) => [host, entries.map(([, key]) => key)]),
    );
  }

  placeOf(object: string): Origin | undefined {
    return this.#byKey.get(object)?.origin;
  }

  /** Notes what the value comes from, for a resource of that text; whether more may be found inside. */
  note(value: object | string, text: string, found: Set<string>): boolean {
    if (typeof value === "string") {
      // Views name objects by their keys, and some parts name a service by its host.
      if (this.#byKey.has(value)) found.add(value);
      for (const key of this.#byHost.get(value) ?? []) found.add(key);
      return false;
    }
    if (value === this.#snapshot.mesh) return false;
    if (isConfigObject(value)) {
      found.add(objectKey(value));
      return false;
    }
    if (isService(value)) {
      const keys = this.#byHost.get(value.hostname) ?? [];
      for (const key of keys.filter((one) => one.split("/")[1] === value.namespace)) found.add(key);
      return false;
    }
    if (isEndpoint(value)) {
      const { namespace, workloadName, address } = value;
      // Of all endpoints of a service, a subset has some.
      if (!text.includes(JSON.stringify(address))) return false;
      const kinds = ["WorkloadEntry", "Pod"].map((kind) => `${kind}/${namespace}/${workloadName}`);
      for (const key of kinds.filter((one) => this.#byKey.has(one))) found.add(key);
      return false;
    }
    return true;
  }
}

/** The hosts that an object declares as services, each with the object's key. */
function hostsOf(object: ConfigObject, domain: string): readonly (readonly [string, string])[] {
  const { kind, metadata, spec } = object;
  if (kind === "Service") return [[`${metadata.name}.${metadata.namespace}.svc.${domain}`, objectKey(object)]];
  if (kind !== "ServiceEntry") return [];
  return (spec as ServiceEntry).hosts.map((host) => [host, objectKey(object)]);
}

function isConfigObject(value: object): value is ConfigObject {
  return "kind" in value && "metadata" in value && "spec" in value;
}

function isService(value: object): value is Service {
  return "hostname" in value && "registry" in value && "resolution" in value;
}

function isEndpoint(value: object): value is Endpoint {
  return "workloadName" in value && "tlsMode" in value && "address" in value;
}
