import assert from "node:assert/strict";
import { test } from "node:test";
import { istioNames, wholeLines } from "./exposition-lines.ts";

async function* cut(text: string, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < text.length; at += size) yield Buffer.from(text.slice(at, at + size));
}

test("wholeLines() and istioNames() work across any cut of the text", async () => {
  const text =
    "# HELP envoy_istio_x y envoy_istio_\n# TYPE envoy_istio_x counter\nenvoy_istio_x 1\nenvoy_other_envoy_istio_ 2\n# envoy_istio_z\nenvoy_istio_last 3";
  const wanted =
    "# HELP istio_x y envoy_istio_\n# TYPE istio_x counter\nistio_x 1\nenvoy_other_envoy_istio_ 2\n# envoy_istio_z\nistio_last 3\n";
  for (let size = 1; size < 60; size++) {
    let result = "";
    for await (const lines of wholeLines(cut(text, size))) {
      assert.ok(lines.toString().endsWith("\n"));
      result += istioNames(lines);
    }
    assert.equal(result, wanted);
  }
});

test("wholeLines() gives nothing for nothing, and no half line of what breaks", async () => {
  const all = async (chunks: AsyncIterable<Buffer>) => {
    let result = "";
    for await (const lines of wholeLines(chunks)) result += lines;
    return result;
  };
  assert.equal(await all(cut("", 1)), "");
  let seen = "";
  await assert.rejects(async () => {
    const breaking = (async function* () {
      yield Buffer.from("whole 1\nhal");
      throw new Error("broken");
    })();
    for await (const lines of wholeLines(breaking)) seen += lines;
  }, /broken/);
  assert.equal(seen, "whole 1\n");
});

test("wholeLines() gives up on a line that does not end", async () => {
  const endless = (async function* () {
    for (;;) yield Buffer.alloc(64 * 1024, "x");
  })();
  await assert.rejects(wholeLines(endless).next(), /a line of the metrics has more than 1048576 bytes/);
});
