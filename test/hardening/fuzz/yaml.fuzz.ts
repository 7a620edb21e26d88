/** YAML of configuration files, up to checked objects. */
import assert from "node:assert/strict";
import { parseObject } from "#config/kinds/parse-object.ts";
import { formatYaml } from "#lib/yaml/format.ts";
import { Places } from "#lib/yaml/places.ts";
import { readDocument, readDocuments, splitDocuments } from "#lib/yaml/read.ts";
import type { FuzzTarget } from "./target.ts";

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    "---\n",
    "...\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!binary ",
    "|-\n  ",
    ">+\n ",
    "? ",
    "__proto__: 1\n",
    "0x1f",
    "1e3",
    ".inf",
    "yes",
    '"\\u',
    "\t",
    "{a: [",
    "apiVersion: networking.istio.io/v1\n",
    "kind: VirtualService\n",
    "spec:\n  hosts: [a]\n",
  ],
  run(input) {
    const text = input.toString();
    for (const { line, error } of readDocuments(text)) assert.ok(line >= 1 && (error?.line ?? 1) >= 1);
    for (const part of splitDocuments(text)) {
      const { value, error } = readDocument(part.text);
      if (error !== undefined) continue;
      const { problems } = parseObject(value);
      for (const { field } of problems.slice(0, 3)) new Places(part.text).line(field.split("."));
    }
    checkRoundTrip(readDocument(text).value);
  },
};

/** Plain data is the same after it was written and read again. */
function checkRoundTrip(value: unknown): void {
  if (!isText(value)) return;
  assert.deepEqual(readDocument(formatYaml({ a: value })).value, { a: value });
}

/** Written texts must not change their type. */
function isText(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed() && !value.includes("\x00");
}
