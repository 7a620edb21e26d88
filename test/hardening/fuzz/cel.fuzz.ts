/** Format strings of access logs and headers, with the CEL attributes that they may contain. */
import assert from "node:assert/strict";
import { knownFormat } from "#translate/filters/format-string.ts";
import type { FuzzTarget } from "./target.ts";

export const target: FuzzTarget = {
  maxBytes: 2048,
  dictionary: [
    "%CEL(request.headers['a'])%",
    "%CEL(",
    ")%",
    "%%",
    "%REQ(:path?x-a):10%",
    "%START_TIME(%s.%3f)%",
    "%DYNAMIC_METADATA(a:b)%",
    "['",
    '["',
    "xds.node.metadata",
    ":1",
    "((((",
  ],
  run(input) {
    const text = input.toString();
    for (const place of ["header", "log"] as const) {
      const known = knownFormat(text, place);
      assert.equal(knownFormat(known, place), known, "a format that is known stays as it is");
      assert.equal(known.replaceAll("%", ""), text.replaceAll("%", ""), "only percent signs are added");
    }
  },
};
