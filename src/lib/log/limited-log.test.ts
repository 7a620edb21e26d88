import assert from "node:assert/strict";
import { test } from "node:test";
import { LimitedLog } from "./limited-log.ts";

test("LimitedLog writes a few lines of each window, and how many it omitted", () => {
  const lines: string[] = [];
  let time = 0;
  const log = new LimitedLog({
    log: { warn: (line) => void lines.push(line) },
    now: () => time,
    lines: 2,
    windowMs: 10,
  });
  for (let i = 0; i < 1_000; i++) log.warn(`refused ${i}`);
  assert.deepEqual(lines, ["refused 0", "refused 1"]);
  time = 10;
  log.warn("later");
  assert.deepEqual(lines.slice(2), ["998 similar lines were omitted", "later"]);
});
