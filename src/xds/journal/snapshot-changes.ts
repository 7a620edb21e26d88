/** In words, what differs between two snapshots. What is the same is the same object, so this looks at little. */
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { listChanges } from "#lib/collections/list-changes.ts";
import { serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";

/** `+ VirtualService/default/reviews`, `~ Endpoints/default/reviews.default.svc.cluster.local`, `~ MeshConfig`; services go by their host. */
export function snapshotChanges(before: Snapshot, after: Snapshot): readonly string[] {
  const objects = Object.keys(after).flatMap((field) => {
    const [old, next] = [Reflect.get(before, field), Reflect.get(after, field)];
    return old !== next && isObjectList(old) && isObjectList(next) ? objectDifferences(old, next) : [];
  });
  return [
    ...(before.mesh === after.mesh ? [] : ["~ MeshConfig"]),
    ...objects,
    ...(before.services === after.services ? [] : serviceDifferences(before, after)),
    ...(before.endpoints === after.endpoints ? [] : endpointDifferences(before, after)),
  ];
}

function serviceDifferences(before: Snapshot, after: Snapshot): readonly string[] {
  const named = (services: Snapshot["services"]) =>
    new Map(services.map((service) => [`Service/${serviceKey(service)}`, service]));
  const { removed, added } = listChanges(before.services, after.services);
  return differences(named(removed), named(added));
}

function endpointDifferences({ endpoints: before }: Snapshot, { endpoints: after }: Snapshot): readonly string[] {
  const found: string[] = [];
  for (const [key, set] of after) {
    const old = before.get(key);
    if (old !== set) found.push(`${old === undefined ? "+" : "~"} Endpoints/${key}`);
  }
  for (const key of before.keys()) if (!after.has(key)) found.push(`- Endpoints/${key}`);
  return found;
}

/** Nearly all are the same objects, which need no names. */
function objectDifferences(before: readonly ConfigObject[], after: readonly ConfigObject[]): readonly string[] {
  const { removed, added } = listChanges(before, after);
  return differences(keyed(removed), keyed(added));
}

/** All items of a list are of one kind: the first tells. */
function isObjectList(value: unknown): value is readonly ConfigObject[] {
  return Array.isArray(value) && value.slice(0, 1).every((item) => isConfigObject(item));
}

function isConfigObject(item: unknown): boolean {
  return typeof item === "object" && item !== null && "kind" in item && "metadata" in item;
}

function keyed(objects: readonly ConfigObject[]): ReadonlyMap<string, unknown> {
  return new Map(objects.map((object) => [objectKey(object), object]));
}

function differences(before: ReadonlyMap<string, unknown>, after: ReadonlyMap<string, unknown>): readonly string[] {
  const changed = [...after].filter(([key, value]) => before.get(key) !== value);
  const gone = [...before.keys()].filter((key) => !after.has(key));
  return [...changed.map(([key]) => `${before.has(key) ? "~" : "+"} ${key}`), ...gone.map((key) => `- ${key}`)];
}
