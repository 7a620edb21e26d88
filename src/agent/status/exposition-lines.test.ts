import assert from "node:assert/strict";
import { test } from "node:test";
import { istioNames, LineCutter } from "./exposition-lines.ts";

/** What comes out of chunks of a text, of one size each; without `end` the text broke off. */
function cutInto(text: string, size: number, end = true): readonly string[] {
  const cutter = new LineCutter();
  const pieces: Buffer[] = [];
  for (let at = 0; at < text.length; at += size) pieces.push(...cutter.cut(Buffer.from(text.slice(at, at + size))));
  if (end) pieces.push(...cutter.end());
  return pieces.map((lines) => {
    assert.ok(lines.toString().endsWith("\n"));
    return istioNames(lines).toString();
  });
}

test("LineCutter and istioNames() work across any cut of the text", () => {
  const text =
    "# HELP envoy_istio_x y envoy_istio_\n# TYPE envoy_istio_x counter\nenvoy_istio_x 1\nenvoy_other_envoy_istio_ 2\n# envoy_istio_z\nenvoy_istio_last 3";
  const wanted =
    "# HELP istio_x y envoy_istio_\n# TYPE istio_x counter\nistio_x 1\nenvoy_other_envoy_istio_ 2\n# envoy_istio_z\nistio_last 3\n";
  for (let size = 1; size < 60; size++) assert.equal(cutInto(text, size).join(""), wanted);
});

test("LineCutter gives nothing for nothing, and no half line of what breaks", () => {
  assert.deepEqual(cutInto("", 1), []);
  assert.equal(cutInto("whole 1\nhal", 11, false).join(""), "whole 1\n");
  assert.equal(cutInto("whole 1\nhal", 3, false).join(""), "whole 1\n");
});

test("LineCutter gives up on a line that does not end", () => {
  const cutter = new LineCutter();
  const endless = () => {
    for (;;) cutter.cut(Buffer.alloc(64 * 1024, "x"));
  };
  assert.throws(endless, /a line of the metrics has more than 1048576 bytes/);
});
