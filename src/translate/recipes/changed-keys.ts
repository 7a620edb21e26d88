import type { EndpointSet } from "#model/service/endpoint.ts";
import type { ServiceKey } from "#model/service/service.ts";
import { derived } from "./indexes.ts";

type Sets = ReadonlyMap<ServiceKey, EndpointSet>;

/** Keys of the services whose endpoints are not the very same. */
export const changedKeys = derived((_: string, before: Sets, after: Sets): ReadonlySet<ServiceKey> => {
  const changed = new Set<ServiceKey>();
  for (const [key, set] of after) if (before.get(key) !== set) changed.add(key);
  for (const key of before.keys()) if (!after.has(key)) changed.add(key);
  return changed;
});
