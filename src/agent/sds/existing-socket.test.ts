import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { HERE } from "../place.ts";
import { serveUnix } from "../unix-server.ts";
import { findForeignServer, isServedByOthers } from "./existing-socket.ts";

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

test("isServedByOthers() removes an empty folder, which a container engine makes in place of a socket that is not there", async (t) => {
  const path = join(temporaryFolder(t), "socket");
  mkdirSync(path);
  assert.equal(await isServedByOthers(path), false);
  assert.equal(existsSync(path), false);
});

test("findForeignServer() refuses a name that is a path, or empty", async () => {
  for (const name of ["a/b", "../socket", ""])
    await assert.rejects(findForeignServer(name, HERE, SILENT), {
      code: "SDS_SOCKET_INVALID",
      message: `workload identity socket file override must be a filename, not a path: ${name}`,
    });
});
