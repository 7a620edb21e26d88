/** Whatever changed before: services are found by address as if they were looked for among all endpoints. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Endpoint, EndpointSet } from "#model/service/endpoint.ts";
import type { ServiceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { meshOf } from "../../../test/support/mesh.ts";
import { setsAtAddress } from "../targets/sets-by-address.ts";

const ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.0.3"];
const KEYS = Array.from({ length: 100 }, (_, i) => `default/s${i}` as ServiceKey);

const set = (addresses: readonly string[]): EndpointSet => ({
  endpoints: addresses.map((address) => ({ address }) as Endpoint),
  identities: [],
});

/** Of some services: their addresses, or nothing where they go. */
const change = fc.array(
  fc.tuple(
    fc.constantFrom(...KEYS),
    fc.option(fc.array(fc.constantFrom(...ADDRESSES), { maxLength: 3 }), { nil: undefined }),
  ),
  { maxLength: 80 },
);

test("services are found by address after any changes, in their order, at old snapshots too", () => {
  const empty = meshOf("");
  fc.assert(
    fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
      const snapshots: Snapshot[] = [{ ...empty, features: { ...empty.features }, endpoints: new Map() }];
      for (const step of changes) {
        const last = snapshots.at(-1) as Snapshot;
        const endpoints = new Map(last.endpoints);
        for (const [key, addresses] of step) {
          if (addresses === undefined) endpoints.delete(key);
          else endpoints.set(key, set(addresses));
        }
        snapshots.push({ ...last, endpoints });
      }
      for (const snapshot of [...snapshots, ...snapshots.toReversed()]) {
        for (const address of ADDRESSES) {
          const expected = [...snapshot.endpoints]
            .filter(([, { endpoints }]) => endpoints.some((endpoint) => endpoint.address === address))
            .map(([key]) => key);
          assert.deepEqual(setsAtAddress(snapshot, address), expected);
        }
      }
    }),
    { numRuns: 300 },
  );
});
