import assert from "node:assert/strict";
import { test } from "node:test";
import { statusHandler } from "./server.ts";
import { requestOf, serveStatus, statusOptions } from "./status-fixture.ts";

test("/debug/pprof gives profiles that Chrome opens", async (t) => {
  const { get } = await serveStatus(t, statusOptions().options);
  assert.match((await get("/debug/pprof/")).body, /<a href="heap">/);
  assert.match((await get("/debug/pprof/cmdline")).body, /node.*\0/);
  const cpu = await get("/debug/pprof/profile?seconds=0.05");
  assert.match(String(cpu.headers["content-disposition"]), /\.cpuprofile"$/);
  const profile = JSON.parse(cpu.body);
  assert.ok(profile.nodes.length > 0 && profile.endTime > profile.startTime && Array.isArray(profile.samples));
  const allocs = JSON.parse((await get("/debug/pprof/allocs?seconds=0.05")).body);
  assert.ok("callFrame" in allocs.head);
});

test("/debug/pprof/heap streams a snapshot", { timeout: 60_000 }, async (t) => {
  const { get } = await serveStatus(t, statusOptions().options);
  const { body, headers } = await get("/debug/pprof/heap");
  assert.match(String(headers["content-disposition"]), /\.heapsnapshot"$/);
  assert.match(body.slice(0, 100), /^\{"snapshot":\{"meta":/);
  assert.ok(body.trimEnd().endsWith("}"));
});

test("/debug/pprof is refused without the flag, from elsewhere, and with times that make no sense", async () => {
  const request = requestOf({ path: "/debug/pprof/profile", query: "?seconds=0.01" });
  const off = statusHandler(statusOptions({ profiling: false }).options);
  assert.equal((await off(request)).status, 404);
  const on = statusHandler(statusOptions().options);
  assert.equal((await on({ ...request, fromLoopback: false })).status, 403);
  for (const query of ["?seconds=x", "?seconds=0", "?seconds=-1", "?seconds=1e9", "?seconds="])
    assert.equal((await on({ ...request, query })).status, 400, query);
  assert.equal((await on({ ...request, path: "/debug/pprof/goroutine" })).status, 404);
});

test("a profile ends when its caller is gone", async () => {
  const gone = new AbortController();
  const answer = statusHandler(statusOptions().options)(
    requestOf({ path: "/debug/pprof/profile", query: "?seconds=500", signal: gone.signal }),
  );
  gone.abort();
  assert.equal((await answer).status, 200);
});
