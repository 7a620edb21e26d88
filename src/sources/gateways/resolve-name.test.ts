import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import packet, { type Answer, type RecordType } from "dns-packet";
import { resolveName } from "./resolve-name.ts";

interface Reply {
  readonly answers?: readonly Answer[];
  readonly code?: number;
}

/** Answers by record type; a type without a reply is never answered. */
async function nameServer(replies: Partial<Record<RecordType, Reply>>): Promise<AsyncDisposable & { address: string }> {
  const socket = createSocket("udp4", (message, { port, address }) => {
    const { id, questions = [] } = packet.decode(message);
    const reply = replies[questions[0]?.type ?? "A"];
    if (reply === undefined) return;
    const { code = 0, answers = [] } = reply;
    const flags = packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | code;
    socket.send(packet.encode({ type: "response", id, flags, questions, answers: [...answers] }), port, address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const close = async () => {
    const closed = once(socket, "close");
    socket.close();
    await closed;
  };
  return { address: `127.0.0.1:${socket.address().port}`, [Symbol.asyncDispose]: close };
}

const a = (data: string, ttl: number): Answer => ({ type: "A", name: "gw.example", data, ttl });
const aaaa = (data: string, ttl: number): Answer => ({ type: "AAAA", name: "gw.example", data, ttl });
const [SERVER_FAILURE, NO_SUCH_NAME] = [2, 3];

async function resolved(replies: Partial<Record<RecordType, Reply>>, timeoutMs = 10_000) {
  await using server = await nameServer(replies);
  return await resolveName("gw.example", new AbortController().signal, { servers: [server.address], timeoutMs });
}

test("resolveName() gives the addresses of both families for as long as the shortest TTL", async () => {
  const answer = await resolved({
    A: { answers: [a("10.0.0.2", 300), a("10.0.0.1", 120)] },
    AAAA: { answers: [aaaa("2001:db8::1", 90)] },
  });
  assert.deepEqual(answer, { value: ["10.0.0.1", "10.0.0.2", "2001:db8::1"], holdsMs: 90_000 });
});

test("resolveName() asks again after 30 seconds at the soonest, and after an hour at the latest", async () => {
  const holds = async (ttl: number) => (await resolved({ A: { answers: [a("10.0.0.1", ttl)] }, AAAA: {} })).holdsMs;
  assert.deepEqual([await holds(1), await holds(86_400)], [30_000, 3_600_000]);
});

test("resolveName() takes a name without addresses for an answer", async () => {
  const nothing = { value: [], holdsMs: 30_000 };
  assert.deepEqual(await resolved({ A: {}, AAAA: {} }), nothing);
  assert.deepEqual(await resolved({ A: { code: NO_SUCH_NAME }, AAAA: { code: NO_SUCH_NAME } }), nothing);
});

test("resolveName() fails when no server answers for either family", async () => {
  const failing = { code: SERVER_FAILURE };
  await assert.rejects(resolved({ A: failing, AAAA: failing }), /ESERVFAIL/);
  await assert.rejects(resolved({}, 20), /ETIMEOUT/);
  const one = await resolved({ A: { answers: [a("10.0.0.1", 60)] }, AAAA: failing });
  assert.deepEqual(one.value, ["10.0.0.1"]);
});

test("resolveName() ends when it is told to", async () => {
  await using server = await nameServer({});
  const stop = new AbortController();
  const running = resolveName("gw.example", stop.signal, { servers: [server.address] });
  stop.abort();
  await assert.rejects(running, /ECANCELLED/);
});
