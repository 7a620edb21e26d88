import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { Admissions } from "./admissions.ts";

test("every refusal is counted by port and reason, and a flood of them writes few lines", () => {
  const counted: unknown[] = [];
  const lines: string[] = [];
  const metrics = { count: (name: string, labels: object) => void counted.push({ name, ...labels }) };
  const log = createLogger({ write: (line) => lines.push(line) });
  const admission = new Admissions(metrics, log).of(15010, { strangerBytes: 0 });
  for (let i = 0; i < 1_000; i++) admission.connection("10.0.0.1", () => undefined);
  const [first] = counted;
  assert.deepEqual(first, {
    name: "mizzen_refused_peers_total",
    port: "15010",
    what: "connection",
    reason: "no_room",
  });
  assert.equal(counted.length, 1_000);
  assert.ok(lines.length < 100, `${lines.length} lines`);
  assert.match(lines[0] ?? "", /connection refused\tport=15010 peer=10\.0\.0\.1 reason=no_room/);
});
