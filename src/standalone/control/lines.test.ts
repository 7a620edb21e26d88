import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, Socket } from "node:net";
import { test } from "node:test";
import { onJsonLines, sendJsonLine } from "./lines.ts";

function reading() {
  const socket = new Socket().on("error", () => undefined);
  const values: unknown[] = [];
  onJsonLines(socket, (value) => values.push(value));
  return { socket, values, come: (chunk: string) => void socket.emit("data", chunk) };
}

test("onJsonLines() joins what arrives in pieces and separates what arrives together", () => {
  const { values, come } = reading();
  for (const chunk of ['{"a"', ":1}", "\n2\n", "3", "\n", '4\n"5"\n6']) come(chunk);
  assert.deepEqual(values, [{ a: 1 }, 2, 3, 4, "5"]);
});

test("onJsonLines() reads a long line in small pieces at a cost that grows with its length alone", () => {
  const { values, come, socket } = reading();
  const piece = "x".repeat(1_024);
  const before = process.cpuUsage();
  come('"');
  for (let sent = 0; sent < 16 * 1_024; sent++) come(piece);
  come('"\n');
  const { user, system } = process.cpuUsage(before);
  assert.equal(String(values[0]).length, 16 * 1_024 * 1_024);
  assert.equal(socket.destroyed, false);
  assert.ok(user + system < 5_000_000, `${user + system} µs`);
});

test("onJsonLines() ends what is no JSON, and a line without end", () => {
  const broken = reading();
  broken.come("{\n");
  assert.match(String(broken.socket.errored), /no JSON/);
  const endless = reading();
  const piece = "x".repeat(1024 * 1024);
  for (let sent = 0; sent <= 64; sent++) endless.come(piece);
  assert.match(String(endless.socket.errored), /without end/);
});

test("sendJsonLine() cuts off a reader that has stopped reading", async (t) => {
  const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [reader] = (await once(server, "connection")) as [Socket];
  t.after(() => reader.destroy());
  const line = { text: "x".repeat(1024 * 1024) };
  for (let sent = 0; sent < 60; sent++) sendJsonLine(socket, line);
  assert.equal(socket.destroyed, false);
  for (let sent = 0; sent < 40; sent++) sendJsonLine(socket, line);
  assert.equal(socket.destroyed, true);
});
