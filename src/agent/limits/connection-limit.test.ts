import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { ConnectionLimit } from "./connection-limit.ts";

function sockets(limit: ConnectionLimit, count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = new Socket();
    limit.add(socket);
    return socket;
  });
}

test("ConnectionLimit replaces a connection that was never used before one that waits for its next request", () => {
  const limit = new ConnectionLimit(3);
  const [kept, unused, busy] = sockets(limit, 3) as [Socket, Socket, Socket];
  limit.begin(kept);
  limit.end(kept);
  limit.begin(busy);
  sockets(limit, 1);
  assert.deepEqual([kept.destroyed, unused.destroyed, busy.destroyed, limit.size], [false, true, false, 3]);
});

test("ConnectionLimit replaces idle connections before busy ones, and the least recently used of them first", () => {
  const limit = new ConnectionLimit(2);
  const [first, second] = sockets(limit, 2) as [Socket, Socket];
  for (const socket of [second, first]) {
    limit.begin(socket);
    limit.end(socket);
  }
  limit.begin(first);
  for (const socket of sockets(limit, 1)) limit.begin(socket);
  assert.deepEqual([first.destroyed, second.destroyed], [false, true]);
  sockets(limit, 1);
  assert.equal(first.destroyed, true, "all are busy");
});
