import assert from "node:assert/strict";
import { test } from "node:test";
import { Coverage } from "./coverage.ts";
import { type ExploreOptions, explore, problemOf, smallestCorpus } from "./explore.ts";
import { seededRandom } from "./mutate.ts";
import type { FuzzTarget } from "./target.ts";

/** Chance alone would need some 2^40 runs. */
function plantedBug(input: Buffer): void {
  if (input[0] === 0x4d) {
    if (input[1] === 0x49) {
      if (input[2] === 0x5a) {
        if (input[3] === 0x5a) {
          if (input[4] === 0x45) throw new Error("the planted bug");
        }
      }
    }
  }
}

function targetOf(run: FuzzTarget["run"]): FuzzTarget {
  return { maxBytes: 64, dictionary: [], run };
}

function optionsFor(target: FuzzTarget, maxRuns: number): ExploreOptions {
  let runs = 0;
  const coverage = new Coverage((url) => url.endsWith("/explore.test.ts"));
  return { target, coverage, random: seededRandom(1), corpus: [], next: () => runs++ < maxRuns };
}

test("coverage leads to a bug behind nested conditions, and the finding is shortened", async () => {
  const { finding } = await explore(optionsFor(targetOf(plantedBug), 200_000));
  assert.equal(finding?.input.toString(), "MIZZE");
  assert.match(finding.message, /the planted bug/);
});

test("an input that takes long is a finding", async () => {
  const slow = targetOf(() => {
    for (const start = process.cpuUsage(); process.cpuUsage(start).user < 250_000; );
  });
  assert.match((await problemOf(slow, Buffer.from("x"))) ?? "", /takes \d+ ms of CPU for 1 bytes/);
});

test("the corpus keeps the shortest inputs that reach every block", async () => {
  let reached = "";
  const target = targetOf((input) => {
    if (input[0] === 0x61) reached = "a";
    else if (input[0] === 0x62) reached = "b";
    else reached = "else";
  });
  const inputs = ["abc", "a", "aa", "b", "bbbb", "x"].map((text) => Buffer.from(text));
  const kept = await smallestCorpus(optionsFor(target, 0), inputs, 1024);
  assert.deepEqual(kept.map(String), ["a", "b", "x"]);
  assert.notEqual(reached, "");
});
