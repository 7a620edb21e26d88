import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { withMessages } from "#lib/wire/fields.ts";
import { type JoinedBefore, joinedLength, joinParts, type Part, writeParts } from "./joined-parts.ts";

const PARTS: readonly Part[] = Array.from({ length: 12 }, (_, i) => ({ bytes: Buffer.alloc(i * 30, 65 + i) }));
const FIELD = 3;

function joinedAfter(parts: readonly Part[], before: JoinedBefore | undefined): JoinedBefore {
  const joined = joinParts(parts, FIELD, before);
  const bytes = new Uint8Array(joinedLength(joined));
  writeParts(bytes, 0, joined, before);
  return { ...joined, bytes };
}

test("parts that were joined to those of before are those that are joined anew", () => {
  const lists = fc.array(fc.array(fc.constantFrom(...PARTS), { maxLength: 8 }), { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(lists, (steps) => {
      let last: JoinedBefore | undefined;
      for (const parts of steps) {
        last = joinedAfter(parts, last);
        const anew = joinedAfter(parts, undefined);
        assert.deepEqual(last, anew);
        const messages = parts.map(({ bytes }) => bytes);
        assert.deepEqual(Buffer.from(last.bytes), Buffer.from(withMessages(new Uint8Array(), FIELD, messages)));
      }
    }),
  );
});

test("hashes tell parts and their order", () => {
  const [a, b] = [PARTS[1], PARTS[2]].map((part) => ({ bytes: part?.bytes ?? new Uint8Array() }));
  assert.ok(a && b);
  const hashOf = (...parts: Part[]) => Buffer.from(joinParts(parts, FIELD).hashes).toString("hex");
  assert.equal(new Set([hashOf(a, b), hashOf(b, a), hashOf(a), hashOf(a, a)]).size, 4);
  assert.equal(hashOf({ ...a }, { ...b }), hashOf(a, b));
});

test("parts of another field are joined anew", () => {
  const before = joinedAfter(PARTS, undefined);
  const joined = joinParts(PARTS, 200, before);
  const bytes = new Uint8Array(joinedLength(joined));
  writeParts(bytes, 0, joined, before);
  assert.deepEqual(
    Buffer.from(bytes),
    Buffer.from(
      withMessages(
        new Uint8Array(),
        200,
        PARTS.map((part) => part.bytes),
      ),
    ),
  );
});
