import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { EMPTY_REQUEST } from "./messages/delta-request.ts";
import { CLUSTER_TYPE } from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import { afterSending, type Draft, emit, type Form, onRequest, retarget, subscribe } from "./subscription.ts";

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

/** What a proxy has after a response: it takes all of it, or nothing because of what is bad in it. */
function judge(has: ReadonlyMap<string, string>, { resources, repeated, removed }: Draft<Resource>, form: Form) {
  const bad = resources.filter(({ version }) => version.startsWith("bad")).map(({ name }) => name);
  if (bad.length > 0) return { has, bad };
  const after = new Map(form === "complete" ? [] : has);
  for (const { name, version } of [...repeated, ...resources]) after.set(name, version);
  for (const name of removed) after.delete(name);
  return { has: after, bad };
}

test("a proxy keeps what it took of a resource until it takes a newer version, whenever changes and answers come", () => {
  const steps = fc.array(fc.oneof(resources, fc.constant("respond" as const)), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(steps, fc.constantFrom<Form>("delta", "complete"), fc.boolean(), (steps, form, saysWho) => {
      let state = subscribe<Resource>({ ...EMPTY_REQUEST, typeUrl: CLUSTER_TYPE }, form);
      let target: Record<string, string> = {};
      let has: ReadonlyMap<string, string> = new Map();
      const respond = (): boolean => {
        const draft = emit(state, { removals: true });
        if (draft === undefined) return false;
        const judged = judge(has, draft, form);
        const error = { code: 13, message: saysWho ? judged.bad.join(", ") : "no" };
        const answer = { ...EMPTY_REQUEST, nonce: "n", error: judged.bad.length > 0 ? error : undefined };
        state = onRequest(afterSending(draft, "n"), answer).subscription;
        for (const [name, version] of has) {
          const now = judged.has.get(name);
          if (name in target) assert.ok(now === version || now === target[name], `${name}: ${version}, then ${now}`);
        }
        has = judged.has;
        return true;
      };
      for (const step of steps) {
        if (step === "respond") respond();
        else {
          target = step;
          state = retarget(state, [layer(target)]);
        }
      }
      for (let rounds = 0; respond(); rounds++) assert.ok(rounds < 100, "it goes on for ever");
      for (const [name, version] of Object.entries(target))
        if (!version.startsWith("bad")) assert.equal(has.get(name), version);
      for (const name of has.keys()) assert.ok(name in target, `${name} is gone`);
    }),
    { numRuns: 500 },
  );
});
