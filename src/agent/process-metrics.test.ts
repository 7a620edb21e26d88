import assert from "node:assert/strict";
import { openSync } from "node:fs";
import { test } from "node:test";
import { parseLimit, parseNetstat, parseVirtualMemory, processMetrics } from "./process-metrics.ts";

const LIMITS = `Limit                     Soft Limit           Hard Limit           Units     
Max open files            1024                 524288               files     
Max address space         unlimited            unlimited            bytes     
`;
const NETSTAT = `TcpExt: SyncookiesSent InOctets
TcpExt: 1 2
IpExt: InNoRoutes InOctets OutOctets
IpExt: 0 300 40
`;

const metricValue = (name: string, folder?: string) =>
  processMetrics(folder)
    .find((metric) => metric.name === name)
    ?.read();

test("processMetrics() gives all that Prometheus' libraries give", () => {
  const missing = processMetrics().filter(({ read }) => !Number.isFinite(read()));
  assert.deepEqual(missing, []);
  assert.equal(processMetrics().length, 9);
});

test("processMetrics() counts descriptors that are opened later", () => {
  const before = metricValue("process_open_fds") ?? 0;
  openSync("/dev/null", "r");
  assert.equal(metricValue("process_open_fds"), before + 1);
});

test("processMetrics() leaves out what the kernel does not tell", () => {
  const told = processMetrics("/nowhere").filter(({ read }) => read() !== undefined);
  assert.deepEqual(
    told.map(({ name }) => name),
    ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_start_time_seconds"],
  );
});

test("parseLimit() reads soft limits", () => {
  assert.equal(parseLimit(LIMITS, "Max open files"), 1024);
  assert.equal(parseLimit(LIMITS, "Max address space"), 2 ** 64);
  assert.equal(parseLimit(LIMITS, "Max cats"), undefined);
});

test("parseNetstat() finds a value below its name, of the right protocol", () => {
  assert.equal(parseNetstat(NETSTAT, "IpExt", "InOctets"), 300);
  assert.equal(parseNetstat(NETSTAT, "IpExt", "OutOctets"), 40);
  assert.equal(parseNetstat(NETSTAT, "IpExt", "Cats"), undefined);
  assert.equal(parseNetstat("", "IpExt", "InOctets"), undefined);
});

test("parseVirtualMemory() is not misled by the program's name", () => {
  const fields = Array.from({ length: 50 }, (_, index) => index + 3);
  assert.equal(parseVirtualMemory(`1 (a ) b) ${fields.join(" ")}`), 23);
  assert.equal(parseVirtualMemory(""), undefined);
});
