import assert from "node:assert/strict";
import { test } from "node:test";
import { styleFor } from "#lib/print/style.ts";
import { formatPushes, type JournalEntry } from "./pushes-table.ts";

const PUSH = { at: "1970-01-01T00:00:00.000Z", type: "rds", view: "v", resources: 1, removed: 0, bytes: 10 } as const;
const NODE = "sidecar~10.0.0.1~web-1.default~default.svc.cluster.local";
const ENTRIES: readonly JournalEntry[] = [
  {
    id: 0,
    objects: [],
    objectCount: 0,
    views: 1,
    proxies: 1,
    bytes: 10,
    pushes: [{ ...PUSH, node: NODE, result: "acknowledged", answeredAfterMs: 12 }],
  },
  {
    id: 1,
    changedAt: "1970-01-01T00:00:01.000Z",
    objects: ["~ VirtualService/default/web", "+ Service/default/x"],
    objectCount: 70,
    views: 1,
    proxies: 1,
    bytes: 10,
    pushes: [{ ...PUSH, node: NODE, result: "rejected", error: "bad regex", culprits: ["8080"] }],
  },
];

test("each change is a line, and each rejection is told with its words", () => {
  const text = formatPushes(ENTRIES, styleFor({}, {}));
  const [head = "", first = "", second = "", rejection = ""] = text.split("\n");
  assert.match(head, /^CHANGE +TIME +WHAT/);
  assert.match(first, /^0 +- +a proxy connected +1 +1 +10 +12 ms +acknowledged$/);
  assert.match(second, /^1 +00:00:01.000 +~ VirtualService\/default\/web and 69 more .*rejected$/);
  assert.equal(rejection, "change 1: web-1.default rejected rds 8080: bad regex");
});
