import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { serveUnix } from "../unix-server.ts";
import { isServedByOthers } from "./existing-socket.ts";

test("isServedByOthers() finds a server that speaks gRPC", async (t) => {
  const path = join(temporaryFolder(t), "socket");
  const stop = new AbortController();
  t.after(() => stop.abort());
  await serveUnix(path, [], { signal: stop.signal });
  assert.equal(await isServedByOthers(path), true);
  assert.equal(existsSync(path), true);
});

test("isServedByOthers() finds nothing where there is nothing, or a plain file", async (t) => {
  const path = join(temporaryFolder(t), "socket");
  assert.equal(await isServedByOthers(path), false);
  writeFileSync(path, "");
  assert.equal(await isServedByOthers(path), false);
});

test("isServedByOthers() removes what a dead server left, and a socket of something else", async (t) => {
  const folder = temporaryFolder(t);
  const mute = join(folder, "mute");
  const server = createServer((socket) => socket.resume()).listen(mute);
  t.after(() => server.close());
  assert.equal(await isServedByOthers(mute), false);
  assert.equal(existsSync(mute), false);
});

test("isServedByOthers() rejects when what is in the way cannot be removed", async (t) => {
  const path = join(temporaryFolder(t), "socket");
  mkdirSync(join(path, "full"), { recursive: true });
  await assert.rejects(isServedByOthers(path), {
    code: "SDS_SOCKET_INVALID",
    message: /existing SDS socket .* could not be removed/,
  });
});
