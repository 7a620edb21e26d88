import assert from "node:assert/strict";
import { test } from "node:test";
import { Turns } from "./turns.ts";

test("Turns runs one piece of work in each turn of the event loop, in order", async () => {
  const turns = new Turns();
  const seen: string[] = [];
  let turn = 0;
  const count = () => {
    turn++;
    if (seen.length < 3) setImmediate(count);
  };
  for (const name of ["a", "b", "c"]) turns.run(() => seen.push(`${name}${turn}`));
  assert.deepEqual(seen, []);
  setImmediate(count);
  while (seen.length < 3) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(seen, ["a0", "b1", "c2"]);
});
