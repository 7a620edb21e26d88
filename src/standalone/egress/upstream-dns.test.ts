import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { machineNameServers, upstreamDns } from "./upstream-dns.ts";

async function bound(address = "127.0.0.1", port = 0): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(port, address);
  await once(socket, "listening");
  return socket;
}

const QUERY = Buffer.from("\x12\x34............ who are you", "latin1");

test("upstreamDns() asks under a number of its own and answers under the caller's", async () => {
  const server = await bound();
  const seen: number[] = [];
  server.on("message", (message, peer) => {
    seen.push(message.readUInt16BE(0));
    server.send(Buffer.concat([message.subarray(0, 2), Buffer.from("...........it is me")]), peer.port, peer.address);
  });
  const dns = upstreamDns({ socket: await bound(), servers: async () => ["127.0.0.1"], port: server.address().port });
  const answers = await Promise.all([QUERY, QUERY, QUERY].map((query) => dns.ask(query)));
  for (const answer of answers) assert.equal(answer?.toString("latin1"), "\x12\x34...........it is me");
  assert.equal(new Set(seen).size, 3);
  dns.close();
  server.close();
});

test("upstreamDns() goes on to the next server, and gives up after the last", async () => {
  const server = await bound("127.0.0.2");
  server.on("message", (message, peer) => server.send(message, peer.port, peer.address));
  const { port } = server.address();
  const dns = upstreamDns({
    socket: await bound("0.0.0.0"),
    servers: async () => ["127.0.0.3", "127.0.0.2"],
    port,
    timeoutMs: 50,
  });
  assert.deepEqual(await dns.ask(QUERY), QUERY);
  server.close();
  assert.equal(await dns.ask(QUERY), undefined);
  assert.equal(await dns.ask(Buffer.from("short")), undefined);
  dns.close();
});

test("upstreamDns() believes nobody but the server that it asked", async () => {
  const server = await bound();
  const liar = await bound();
  server.on("message", (message, peer) => liar.send(message, peer.port, peer.address));
  const { port } = server.address();
  const dns = upstreamDns({ socket: await bound(), servers: async () => ["127.0.0.1"], port, timeoutMs: 100 });
  assert.equal(await dns.ask(QUERY), undefined);
  dns.close();
  liar.close();
  server.close();
});

test("machineNameServers() reads resolv.conf as it is now", async () => {
  const folder = await mkdtemp(join(tmpdir(), "resolv-"));
  const file = join(folder, "resolv.conf");
  assert.deepEqual(await machineNameServers(file), []);
  await writeFile(
    file,
    "# nameserver 1.1.1.1\nsearch home\nnameserver 127.0.0.53\n nameserver\tfe80::1\nnameserver 9.9.9.9\n",
  );
  assert.deepEqual(await machineNameServers(file), ["127.0.0.53", "9.9.9.9"]);
  await rm(folder, { recursive: true });
});
