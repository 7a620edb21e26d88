import assert from "node:assert/strict";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { profilePage } from "./profiling.ts";

const { signal } = new AbortController();

async function bodyOf(path: string, query = ""): Promise<{ readonly body: string; readonly file: string }> {
  const page = await profilePage(path, query, signal);
  assert.equal(page?.status, 200, path);
  const body = typeof page.body === "string" ? page.body : await text(page.body);
  return { body, file: page.headers?.["content-disposition"] ?? "" };
}

test("/debug/pprof gives profiles that Chrome opens", async () => {
  assert.match((await bodyOf("/debug/pprof/")).body, /<a href="heap">/);
  assert.match((await bodyOf("/debug/pprof/cmdline")).body, /node.*\0/);
  const cpu = await bodyOf("/debug/pprof/profile", "?seconds=0.05");
  assert.match(cpu.file, /\.cpuprofile"$/);
  const profile = JSON.parse(cpu.body);
  assert.ok(profile.nodes.length > 0 && profile.endTime > profile.startTime && Array.isArray(profile.samples));
  const allocs = JSON.parse((await bodyOf("/debug/pprof/allocs", "?seconds=0.05")).body);
  assert.ok("callFrame" in allocs.head);
});

test("/debug/pprof/heap streams a snapshot", { timeout: 60_000 }, async () => {
  const { body, file } = await bodyOf("/debug/pprof/heap");
  assert.match(file, /\.heapsnapshot"$/);
  assert.match(body.slice(0, 100), /^\{"snapshot":\{"meta":/);
  assert.ok(body.trimEnd().endsWith("}"));
});

test("profilePage() rejects times that make no sense, and knows no other pages", async () => {
  for (const query of ["?seconds=x", "?seconds=0", "?seconds=-1", "?seconds=1e9", "?seconds="])
    assert.equal((await profilePage("/debug/pprof/profile", query, signal))?.status, 400, query);
  for (const path of ["/debug/pprof/goroutine", "/debug/pprof/__proto__", "/debug/pprofheap", "/heap"])
    assert.equal(await profilePage(path, "", signal), undefined, path);
});

test("a profile ends when its caller is gone", async () => {
  const gone = new AbortController();
  const page = profilePage("/debug/pprof/profile", "?seconds=500", gone.signal);
  gone.abort();
  assert.equal((await page)?.status, 200);
});
