import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { isServed, openUnixSocket } from "./unix-socket.ts";

test("openUnixSocket() keeps connections, and what they send, until somebody serves them", async (t) => {
  const path = join(temporaryFolder(t), "private/socket");
  const socket = await openUnixSocket(path);
  const early = connect(path);
  await once(early, "connect");
  early.write("hello");
  const first = Promise.withResolvers<string>();
  const taken: string[] = [];
  socket.serve((connection) => {
    connection.on("data", (bytes) => {
      taken.push(String(bytes));
      connection.end(`${bytes} to you`);
    });
  }, assert.ifError);
  early.once("data", (bytes) => first.resolve(String(bytes)));
  assert.equal(await first.promise, "hello to you");
  const late = connect(path);
  late.write("again");
  const [answer] = await once(late, "data");
  assert.equal(String(answer), "again to you");
  assert.deepEqual(taken, ["hello", "again"]);
  socket.close();
});

test("openUnixSocket() cuts connections that nobody took when it is closed", async (t) => {
  const path = join(temporaryFolder(t), "socket");
  const socket = await openUnixSocket(path);
  const early = connect(path);
  await once(early, "connect");
  const closed = new Promise((resolve) => early.once("close", resolve));
  early.on("error", () => undefined).resume();
  socket.close();
  await closed;
  await assert.rejects(once(connect(path), "connect"), { code: /ENOENT|ECONNREFUSED/ });
});

test("openUnixSocket() takes the place of an empty folder, and of no other", async (t) => {
  const folder = temporaryFolder(t);
  const [empty, full] = [join(folder, "empty"), join(folder, "full")];
  mkdirSync(empty);
  mkdirSync(join(full, "of"), { recursive: true });
  const socket = await openUnixSocket(empty);
  t.after(() => socket.close());
  assert.equal(await isServed(empty), true);
  await assert.rejects(openUnixSocket(full), { code: "SOCKET_NOT_SERVED" });
});
