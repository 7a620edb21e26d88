import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EMPTY_REQUEST } from "./delta-request.ts";
import type { Resource } from "./resource.ts";
import { afterSending, emit, onRequest, retarget, subscribe } from "./subscription.ts";
import { CLUSTER_TYPE } from "./type-urls.ts";

const resources = fc.dictionary(
  fc.constantFrom("a", "b", "c", "d", "e"),
  fc.constantFrom("1", "2", "3", "bad1", "bad2"),
);
const layer = (versions: Record<string, string>) =>
  new Map(
    Object.entries(versions).map(([name, version]): [string, Resource] => [
      name,
      { name, version, value: new Uint8Array(), awaits: undefined },
    ]),
  );

test("a proxy that rejects bad resources gets all the others, and never the same response twice after a rejection", () => {
  fc.assert(
    fc.property(fc.array(resources, { minLength: 1, maxLength: 5 }), fc.boolean(), (targets, names) => {
      let state = subscribe<Resource>({ ...EMPTY_REQUEST, typeUrl: CLUSTER_TYPE });
      const has = new Map<string, string>();
      const good = new Map<string, string>();
      for (const target of targets) {
        state = retarget(state, [layer(target)]);
        const rejected = new Set<string>();
        for (
          let draft = emit(state, { removals: true });
          draft !== undefined;
          draft = emit(state, { removals: true })
        ) {
          const said = JSON.stringify([draft.resources.map((r) => `${r.name}@${r.version}`).sort(), draft.removed]);
          assert.ok(!rejected.has(said), `again: ${said}`);
          const bad = draft.resources.filter((resource) => resource.version.startsWith("bad"));
          const message = names ? bad.map((resource) => resource.name).join(", ") : "no";
          const error = bad.length > 0 ? { code: 13, message } : undefined;
          if (error !== undefined) rejected.add(said);
          else for (const { name, version } of draft.resources) has.set(name, version);
          if (error === undefined) for (const name of draft.removed) has.delete(name);
          state = onRequest(afterSending(draft, "n"), {
            ...EMPTY_REQUEST,
            nonce: "n",
            error,
          }).subscription;
        }
        for (const name of [...good.keys()]) if (!(name in target)) good.delete(name);
        for (const [name, version] of Object.entries(target)) if (!version.startsWith("bad")) good.set(name, version);
        assert.deepEqual(new Map([...has].sort()), new Map([...good].sort()));
      }
    }),
    { numRuns: 500 },
  );
});
