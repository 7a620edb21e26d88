/** Whatever the configuration was before: a snapshot that follows another equals one that is made from nothing. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { ConfigObject } from "#config/config-object.ts";
import { meshConfigOf } from "#config/mesh-config.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { objectsOf } from "../../test/support/mesh.ts";
import { object, service, workload } from "../../test/support/objects.ts";
import { buildSnapshot } from "./snapshot.ts";

const route = (host: string) => ({ route: [{ destination: { host } }] });
const leaf = (timeout: string) => ({ http: [{ timeout, route: [{ destination: { host: "a" } }] }] });
const delegate = (name: string) => ({ delegate: { name, namespace: "default" } });
/** Each object in several states; each configuration takes one of them, or none. */
const STATES: readonly (readonly ConfigObject[])[] = [
  [
    object("VirtualService", "v1", { hosts: ["a"], http: [route("a")] }),
    object("VirtualService", "v1", { hosts: ["b"], http: [route("a")] }),
  ],
  [
    object("VirtualService", "v2", { hosts: ["c"], http: [delegate("d1")] }),
    object("VirtualService", "v2", { hosts: ["c"], http: [route("a")] }),
    object("VirtualService", "v2", { hosts: ["c"], http: [delegate("d2")] }),
  ],
  [object("VirtualService", "d1", leaf("1s")), object("VirtualService", "d1", leaf("2s"))],
  [object("VirtualService", "d2", leaf("3s")), object("VirtualService", "d2", { hosts: ["d"], http: [route("a")] })],
  [
    object(
      "VirtualService",
      "other/v1",
      { hosts: ["e"], http: [route("a")] },
      { creationTimestamp: "2020-01-01T00:00:00Z" },
    ),
  ],
  [service("a", { name: "http", port: 80 }), service("a", { name: "http", port: 81 })],
  [service("b", { name: "http", port: 80 })],
  [workload("a-1", "10.0.0.1"), workload("a-1", "10.0.0.2")],
  [workload("b-1", "10.0.0.3")],
  [object("DestinationRule", "a", { host: "a" }), object("DestinationRule", "a", { host: "b" })],
].map((states) => states.flatMap(objectsOf));

const configurations = fc.array(
  fc.tuple(
    fc.tuple(...STATES.map((states) => fc.option(fc.constantFrom(...states), { nil: undefined }))),
    fc.boolean(),
  ),
  { minLength: 2, maxLength: 8 },
);

test("a snapshot that followed many others equals one from nothing", () => {
  fc.assert(
    fc.property(configurations, (steps) => {
      const [mesh, features] = [meshConfigOf({}).value, { ...DEFAULT_FEATURES }];
      assert.ok(mesh);
      let previous: Snapshot | undefined;
      for (const [chosen, isReversed] of steps) {
        const found = chosen.filter((one) => one !== undefined);
        const objects = isReversed ? found.toReversed() : found;
        const next = buildSnapshot({ objects, mesh, features, ...(previous && { previous }) });
        const anew = buildSnapshot({ objects, mesh, features: { ...features } });
        assert.deepEqual({ ...next, version: 0 }, { ...anew, version: 0 });
        previous = next;
      }
    }),
    { numRuns: 200 },
  );
});
