import assert from "node:assert/strict";
import { test } from "node:test";
import { OverlayError, overlayPatched } from "./overlay-path.ts";

const OBJECT = {
  spec: {
    containers: [{ name: "a", args: ["--age", "30m"], ports: [{ port: 80 }, { port: 443 }] }, { name: "b" }],
  },
  "x.y": 1,
};
const [A, B] = OBJECT.spec.containers;

for (const [path, value, wanted] of [
  ["spec.more.deep", 1, { ...OBJECT, spec: { ...OBJECT.spec, more: { deep: 1 } } }],
  [".x\\.y", 2, { ...OBJECT, "x.y": 2 }],
  ["x\\.y", null, { spec: OBJECT.spec }],
  ["spec.containers.[name:b].image", "i", { ...OBJECT, spec: { containers: [A, { ...B, image: "i" }] } }],
  ["spec.containers[1]", null, { ...OBJECT, spec: { containers: [A] } }],
  ["spec.containers.[name:a]", null, { ...OBJECT, spec: { containers: [B] } }],
  ["spec.containers[-1]", { name: "c" }, { ...OBJECT, spec: { containers: [A, B, { name: "c" }] } }],
  ["spec.containers[9].name", "c", { ...OBJECT, spec: { containers: [A, B, { name: "c" }] } }],
  ["spec.containers[0].args.[30m]", "60m", changedA({ args: ["--age", "60m"] })],
  ["spec.containers[0].args.[:^--ag]", "--old", changedA({ args: ["--old", "30m"] })],
  ["spec.containers[0].ports.[port:443].name", "tls", changedA({ ports: [{ port: 80 }, { port: 443, name: "tls" }] })],
  ["spec.containers[0].env[0].name", "E", changedA({ env: [{ name: "E" }] })],
  ["spec.containers[0].args", ["x"], changedA({ args: ["x"] })],
  ["x\\.y", "a: 1", { ...OBJECT, "x.y": { a: 1 } }],
  ["x\\.y", "a:\n  b: 1\n", { ...OBJECT, "x.y": { a: { b: 1 } } }],
  ["x\\.y", '{"a": 1}', { ...OBJECT, "x.y": '{"a": 1}' }],
  ["x\\.y", "10.0.0.1:80", { ...OBJECT, "x.y": "10.0.0.1:80" }],
] as const) {
  test(`overlayPatched() puts ${JSON.stringify(value)} at ${path}`, () => {
    const before = structuredClone(OBJECT);
    assert.deepEqual(overlayPatched(OBJECT, path, value), wanted);
    assert.deepEqual(OBJECT, before);
  });
}

function changedA(change: object) {
  return { ...OBJECT, spec: { containers: [{ ...A, ...change }, B] } };
}

for (const [path, message] of [
  ["", 'path "" is empty'],
  ["spec.containers.[name:c].x", 'path "spec.containers.[name:c].x": the list has no item [name:c]'],
  ["spec.containers[0].args.[(]", 'path "spec.containers[0].args.[(]": the list has no item [(]'],
  ["x\\.y.z", 'path "x\\.y.z": there is nothing under "z", what is before it is no object'],
] as const) {
  test(`overlayPatched() says that "${path}" leads nowhere`, () =>
    assert.throws(
      () => overlayPatched(OBJECT, path, 1),
      (problem) => {
        return problem instanceof OverlayError && problem.message === message;
      },
    ));
}
