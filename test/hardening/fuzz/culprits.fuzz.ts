/** The search for the resource that a NACK speaks of. The first line of an input lists the names, the rest is the text. */
import assert from "node:assert/strict";
import { culprits } from "#protocol/culprits.ts";
import type { FuzzTarget } from "./target.ts";

export const target: FuzzTarget = {
  maxBytes: 4096,
  dictionary: [
    "outbound|80||a.b.svc",
    "8000",
    "10.0.0.1_80",
    "virtualInbound",
    ",",
    ": ",
    ".",
    " \n",
    "Error adding/updating listener(s) ",
  ],
  run(input) {
    const text = input.toString();
    const end = text.indexOf("\n");
    const names = text.slice(0, Math.max(0, end)).split(",");
    const resources = [...new Set(names)].map((name) => ({ name, version: "1" }));
    const message = text.slice(end + 1);
    const found = culprits(message, resources);
    for (const one of found) {
      assert.ok(resources.includes(one), "finds only what it was given");
      assert.ok(message.includes(one.name), "finds only names that the text has");
    }
    assert.equal(new Set(found).size, found.length, "finds each resource once");
  },
};
