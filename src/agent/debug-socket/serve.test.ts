import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, statSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { serveDebugSocket } from "./serve.ts";

const TOKENS = [{ token_type: "access token", issue_time: "a", expire_time: "b" }] as const;

async function serve(t: TestContext): Promise<string> {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const path = join(temporaryFolder(t), "debug", "socket");
  await serveDebugSocket({ path, tokens: () => TOKENS, log: SILENT }, stop.signal);
  return path;
}

async function get(socketPath: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
  const sent = request({ socketPath, path, agent: false }).end();
  const [response] = await once(sent, "response");
  return { status: response.statusCode, body: await text(response) };
}

test("the debug socket serves profiles and the state of token exchanges to its own account", async (t) => {
  const path = await serve(t);
  assert.equal((await get(path, "/debug/pprof/")).status, 200);
  for (const page of ["/stsStatus", "/debug"])
    assert.deepEqual(JSON.parse((await get(path, page)).body), { tokens: TOKENS });
  for (const page of ["/", "/debug/pprof/goroutine", "/token"]) assert.equal((await get(path, page)).status, 404, page);
});

test("the debug socket and its folder are private to the account", async (t) => {
  const path = await serve(t);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700);
});

const CONNECT = `require("net").connect(process.argv[1]).on("connect", () => process.exit(0)).on("error", (e) => {
  console.log(e.code); process.exit(1); })`;

test("another account cannot connect to the debug socket", {
  skip: process.getuid?.() !== 0 && "needs root",
}, async (t) => {
  const path = await serve(t);
  // The folder above is one that others may enter.
  chmodSync(dirname(dirname(path)), 0o755);
  const child = spawn(process.execPath, ["-e", CONNECT, path], {
    uid: 12345,
    gid: 12345,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const said = text(child.stdout);
  const [code] = await once(child, "exit");
  assert.deepEqual([code, (await said).trim()], [1, "EACCES"]);
});

test("serveDebugSocket() refuses a folder that others can enter", async (t) => {
  const folder = join(temporaryFolder(t), "debug");
  mkdirSync(folder);
  chmodSync(folder, 0o755);
  const options = { path: join(folder, "socket"), log: SILENT };
  await assert.rejects(serveDebugSocket(options, new AbortController().signal), {
    code: "SOCKET_NOT_SERVED",
    message: /its folder must be private/,
  });
});
