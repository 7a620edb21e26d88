/** Runs every input of the corpus once: what fuzzing found stays fixed. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { FOLDER, MAX_CORPUS_BYTES, readCorpus, targetNames } from "./corpus.ts";
import { problemOf } from "./explore.ts";
import type { FuzzTarget } from "./target.ts";

describe("the fuzzing corpus", () => {
  for (const name of targetNames()) {
    test(`${name}: no input is a finding`, async () => {
      assert.ok(existsSync(join(FOLDER, "corpus", name)), `${name} has no corpus: run make fuzz TARGET=${name}`);
      const { target }: { readonly target: FuzzTarget } = await import(join(FOLDER, `${name}.fuzz.ts`));
      let bytes = 0;
      for (const [file, input] of readCorpus(name)) {
        assert.equal(await problemOf(target, input), undefined, file);
        bytes += input.length;
      }
      assert.ok(bytes <= 2 * MAX_CORPUS_BYTES, `the corpus has ${bytes} bytes`);
    });
  }
});
