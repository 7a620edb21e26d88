import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FrameGroups } from "./frame-groups.ts";

const resource = (id: number) => ({ id, frame: Uint8Array.of(id & 255, id >> 8, 7) });
const RESOURCES = Array.from({ length: 2_000 }, (_, id) => resource(id));
const frameOf = ({ frame }: ReturnType<typeof resource>) => frame;
const bytesOf = (groups: readonly Uint8Array[]) => Buffer.concat(groups);

test("the groups of a list are its frames, whatever lists there were before", () => {
  const groups = new FrameGroups(4_000);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 1_999 }), { maxLength: 600 }), (ids) => {
      const resources = ids.map((id) => RESOURCES[id] ?? resource(id));
      assert.ok(bytesOf(groups.of(resources, frameOf)).equals(bytesOf(resources.map(frameOf))));
    }),
  );
});

test("lists that differ in a few resources have nearly all groups in common", () => {
  const groups = new FrameGroups(1_000_000);
  const one = new Set(groups.of([...RESOURCES.slice(1), resource(5_001), resource(5_002)], frameOf));
  const other = groups.of(
    [resource(6_001), ...RESOURCES.slice(1, 700), ...RESOURCES.slice(701), resource(6_002)],
    frameOf,
  );
  const isShared = (group: Uint8Array) => one.has(group);
  assert.ok(other.filter(isShared).length >= other.length - 3, `${other.filter(isShared).length} of ${other.length}`);
});

test("no more groups are kept than allowed, and none after clearing", () => {
  const list = RESOURCES.slice(0, 300);
  const [small, large] = [new FrameGroups(100), new FrameGroups(1_000)];
  assert.notEqual(small.of(list, frameOf)[0], small.of(list, frameOf)[0]);
  const [before] = large.of(list, frameOf);
  assert.equal(large.of(list, frameOf)[0], before);
  large.clear();
  assert.notEqual(large.of(list, frameOf)[0], before);
});
