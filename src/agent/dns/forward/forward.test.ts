/** Name servers that answer what they should not. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { test } from "node:test";
import packet from "dns-packet";
import { isQuery, parseQuery, type Query } from "../message.ts";
import { type Asking, ask, type NameServer, type Transport } from "./forward.ts";
import { frame } from "./frames.ts";

type Context = { after(fn: () => void): void };
/** What a server sends for a question with this id, one message after another. */
type Script = (id: number) => readonly Buffer[];

const NAME = "www.example";

function question(): Query {
  const query = parseQuery(packet.encode({ type: "query", id: 7, questions: [{ type: "A", name: NAME }] }));
  if (!isQuery(query)) throw new Error("no question");
  return query;
}

const asking = (transport: Transport): Asking => ({
  query: question(),
  transport,
  signal: new AbortController().signal,
});

const reply = ({ id = 7, name = NAME, data = "192.0.2.1" } = {}): Buffer =>
  packet.encode({
    type: "response",
    id,
    questions: [{ type: "A", name }],
    answers: [{ type: "A", name, ttl: 60, data }],
  });

async function overUdp(t: Context, script: Script): Promise<NameServer> {
  const socket = createSocket("udp4", (query, { port, address }) => {
    for (const message of script(query.readUInt16BE(0))) socket.send(message, port, address);
  }).bind(0, "127.0.0.1");
  await once(socket, "listening");
  t.after(() => void socket.close());
  return { host: "127.0.0.1", port: socket.address().port };
}

async function overTcp(t: Context, script: Script): Promise<NameServer> {
  const server = createServer((client) => {
    client.on("error", () => client.destroy());
    client.once("data", (query) => {
      for (const message of script(query.readUInt16BE(2))) client.write(frame(message));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

const addressIn = (answer: Buffer) => {
  const [first] = packet.decode(answer).answers ?? [];
  return first !== undefined && "data" in first ? first.data : undefined;
};

test("ask() fails at once on an answer that cannot be read or is to another question", async (t) => {
  const bad: readonly (readonly [(id: number) => Buffer, RegExp])[] = [
    [(id) => reply({ id }).subarray(0, -1), /cannot be read/],
    [(id) => reply({ id, name: "other.example" }), /answered another question/],
    [(id) => reply({ id }).fill(0, 4, 12), /without the question/],
    [(id) => packet.encode({ type: "query", id }), /a question in place of an answer/],
  ];
  for (const [message, problem] of bad) {
    await assert.rejects(ask(asking("udp"), await overUdp(t, (id) => [message(id)])), problem);
    await assert.rejects(ask(asking("tcp"), await overTcp(t, (id) => [message(id)])), problem);
  }
});

test("ask() has ids of its own, which a client that forges answers to its own questions does not know", async (t) => {
  const ids = new Set<number>();
  const server = await overUdp(t, (id) => {
    ids.add(id);
    return [reply({ data: "192.0.2.66" }), reply({ id })];
  });
  for (let i = 0; i < 20; i++) {
    const answer = await ask(asking("udp"), server);
    // The forged one has the client's id. By chance the agent chose the same, once in thousands of runs.
    if (!ids.has(7)) assert.equal(addressIn(answer), "192.0.2.1");
    assert.equal(answer.readUInt16BE(0), 7, "the client's own");
  }
  assert.ok(ids.size > 15, `only ${ids.size} ids`);
  const overOther = await ask(asking("tcp"), await overTcp(t, (id) => [reply({ id })]));
  assert.equal(overOther.readUInt16BE(0), 7);
});

test("ask() waits on when somebody sends garbage in the server's name", async (t) => {
  const script = (id: number) => [Buffer.from("no DNS at all"), Buffer.from([7]), reply({ id: id ^ 1 }), reply({ id })];
  assert.equal(addressIn(await ask(asking("udp"), await overUdp(t, script))), "192.0.2.1");
});

test("ask() waits for its own answer over UDP; over TCP there is no other", async (t) => {
  const script = (id: number) => [reply({ id: id ^ 1, data: "192.0.2.66" }), reply({ id })];
  assert.equal(addressIn(await ask(asking("udp"), await overUdp(t, script))), "192.0.2.1");
  await assert.rejects(ask(asking("tcp"), await overTcp(t, script)), /answered another question/);
});

test("ask() does not hear who was not asked", async (t) => {
  const stranger = createSocket("udp4").bind(0, "127.0.0.2");
  await once(stranger, "listening");
  t.after(() => void stranger.close());
  const server = createSocket("udp4", (query, { port, address }) => {
    const id = query.readUInt16BE(0);
    stranger.send(reply({ id, data: "192.0.2.66" }), port, address, () => server.send(reply({ id }), port, address));
  }).bind(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  const answer = await ask(asking("udp"), { host: "127.0.0.1", port: server.address().port });
  assert.equal(addressIn(answer), "192.0.2.1");
});
