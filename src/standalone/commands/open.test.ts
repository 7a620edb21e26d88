import assert from "node:assert/strict";
import test from "node:test";
import { styleFor } from "#lib/print/style.ts";
import { NOBODY } from "../plan/enter.ts";
import type { MemberStatus, MeshStatus, PublishedStatus } from "../status/status.ts";
import { accessOnly, prefixed, throughLines } from "./log-lines.ts";
import { browserFor, publishedUrl } from "./open.ts";

function member(name: string, workload = name): MemberStatus {
  return {
    ...{ name, workload, namespace: "default", kind: "workload", address: "10.244.0.10", ports: [], job: false },
    ...{ labels: {}, state: "running", ready: true, reason: "", app: undefined, proxy: undefined },
    logs: { app: undefined, proxy: undefined },
    shell: {
      place: { netns: name, hostname: name, etc: "", namespaces: "", state: "", visible: [], owner: 0 },
      account: NOBODY,
      env: {},
      cwd: "/",
    },
  };
}

function published(name: string, port: number, pages: PublishedStatus["pages"] = []): PublishedStatus {
  return { address: `127.0.0.1:${port}`, member: `${name}.default`, port: 80, entry: `${port}:80`, pages };
}

function mesh(...ports: readonly PublishedStatus[]): MeshStatus {
  return {
    ...{ id: "abc123", name: "shop", file: "/mesh.yaml", stateFolder: "/state", phase: "ready", startedAt: "" },
    egress: false,
    notes: [],
    runner: { pid: 1, startTime: "1", bootId: "" },
    published: ports,
    members: [member("web"), member("gw"), member("db-1", "db")],
  };
}

test("publishedUrl() is the only address, or that of the workload, with the page behind it", () => {
  const pages = [
    { host: "shop.example", path: "/other" },
    { host: "*", path: "/productpage" },
  ];
  assert.equal(publishedUrl(mesh(published("gw", 8080, pages)), undefined), "http://127.0.0.1:8080/productpage");
  const two = mesh(published("gw", 8080), published("web", 8081));
  assert.equal(publishedUrl(two, "web"), "http://127.0.0.1:8081/");
  assert.equal(publishedUrl(two, "web.default"), "http://127.0.0.1:8081/");
  assert.throws(() => publishedUrl(two, undefined), { code: "MEMBER_AMBIGUOUS", message: /gw.default, web.default/ });
  assert.throws(() => publishedUrl(two, "db"), { code: "NOTHING_PUBLISHED", message: /^"db" publishes no port; / });
  assert.throws(() => publishedUrl(mesh(), undefined), { code: "NOTHING_PUBLISHED" });
});

test("browserFor() is there only where there is a screen", () => {
  assert.equal(browserFor({}), undefined);
  assert.ok(browserFor({ DISPLAY: ":0" }));
});

test("throughLines() cuts chunks into lines, wherever they end", () => {
  const lines: string[] = [];
  const write = throughLines((line) => lines.push(line));
  const bytes = Buffer.from("one\ntwo ä\nthr");
  for (const byte of bytes) write(Buffer.from([byte]));
  assert.deepEqual(lines, ["one", "two ä"]);
});

test("prefixed() names members side by side, in colours on a terminal alone", () => {
  const all = [member("web"), member("reviews")];
  assert.equal(prefixed(0, all, styleFor({ isTTY: false }, {})), "web     | ");
  const coloured = all.map((_, i) => prefixed(i, all, styleFor({ isTTY: true }, {})).slice(0, 5));
  assert.notEqual(coloured[0], coloured[1]);
});

test("accessOnly() tells Envoy's access log, as text or JSON, from all else that proxies print", () => {
  assert.ok(accessOnly('[2026-11-16T01:25:02.347Z] "GET /x HTTP/1.1" 200 - via_upstream'));
  assert.ok(accessOnly('{"response_code":200,"path":"/x"}'));
  for (const line of ["2026-11-16T01:25:01.261000Z\tinfo\tready", "[2026-11-16 01:25:02.347][12][warning] x", "{}", ""])
    assert.ok(!accessOnly(line), line);
});
