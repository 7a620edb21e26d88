import assert from "node:assert/strict";
import test from "node:test";
import { styleFor } from "#lib/print/style.ts";
import { duration, formatLive } from "./live-table.ts";

test("duration() shows the two largest units that matter", () => {
  const cases = [
    [0, "0s"],
    [-5, "0s"],
    [59_999, "59s"],
    [60_000, "1m0s"],
    [86_399_000, "23h59m"],
    [90_061_000, "1d1h"],
  ] as const;
  for (const [ms, text] of cases) assert.equal(duration(ms), text);
});

test("formatLive() has a dash for what a member without a proxy cannot tell", () => {
  const plain = { name: "plain", namespace: "default", address: "10.244.0.11", ports: [], restarts: 2, ready: true };
  const rows = [
    { ...plain, name: "web", reason: "", certificateEnds: 61_000, lastPush: 0, rejected: 1 },
    { ...plain, reason: "", certificateEnds: undefined, lastPush: undefined, rejected: undefined },
  ];
  assert.equal(
    formatLive(rows, styleFor({}, {}), 1000),
    `WORKLOAD   NAMESPACE   ADDRESS       RESTARTS   CERTIFICATE   LAST PUSH   NACKS   READY
web        default     10.244.0.11   2          1m0s left     1s ago      1       yes
plain      default     10.244.0.11   2          -             -           -       yes
`,
  );
});
