/** More questions than can be on their way at once. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import packet from "dns-packet";
import { SILENT } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { agentMetrics } from "../../metrics.ts";
import { isQuery, parseQuery, type Query } from "../message.ts";
import { forwarder } from "./forwarder.ts";

const MOST = 512;
/** As long as a question keeps its place from others. */
const LONG_MS = 250;

function question(id: number): Query {
  const query = parseQuery(packet.encode({ type: "query", id, questions: [{ type: "A", name: `n${id}.example` }] }));
  if (!isQuery(query)) throw new Error("no question");
  return query;
}

test("forwarder() lets a new question take the place of the one that waits longest, once that has waited a while", async (t) => {
  let isSilent = true;
  let now = 0;
  const unanswered: (() => void)[] = [];
  const server = createSocket("udp4", (query, { port, address }) => {
    const { id = 0, questions = [] } = packet.decode(query);
    const answer = () => server.send(packet.encode({ type: "response", id, questions }), port, address);
    if (isSilent) unanswered.push(answer);
    else answer();
  }).bind(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => void server.close());
  const { port } = server.address();
  for (const forwardParallel of [false, true]) {
    isSilent = true;
    const nameServers = [1, 2].map(() => ({ host: "127.0.0.1", port }));
    const forward = forwarder({
      nameServers,
      forwardParallel,
      log: SILENT,
      metrics: agentMetrics(),
      now: () => now,
    });
    const failures = new Map<number, string>();
    const ask = (id: number) =>
      forward(question(id), "udp").catch((thrown: unknown) => {
        const reasons = thrown instanceof AggregateError ? thrown.errors : [thrown];
        failures.set(id, errorText(reasons[0]));
        return undefined;
      });
    const asked: ReturnType<typeof ask>[] = [];
    while (asked.length < MOST) {
      asked.push(ask(asked.length));
      // Or the server's buffer would be too small for them.
      if (asked.length % 8 === 0) await pause(1);
    }
    assert.equal(await ask(MOST), undefined);
    assert.deepEqual([...failures], [[MOST, `${MOST} questions wait for an answer already`]]);
    now += LONG_MS;
    isSilent = false;
    assert.ok((await ask(MOST + 1)) !== undefined, "a server that answers again is asked at once");
    await asked[0];
    assert.match(failures.get(0) ?? "", /^Name server 127\.0\.0\.1 was given up for a newer question: 512 /);
    for (const answer of unanswered.splice(0)) answer();
    const answers = await Promise.all(asked);
    assert.equal(answers.filter((answer) => answer !== undefined).length, MOST - 1, "all others go on");
  }
});

test("forwarder() closes what it asked other servers with, once one of several has answered", async (t) => {
  const socketsOpen = async () => {
    await pause(20); // what was closed is gone a turn later
    return process.getActiveResourcesInfo().filter((kind) => kind === "UDPWrap").length;
  };
  const server = createSocket("udp4", (query, { port, address }) => {
    const { id = 0, questions = [] } = packet.decode(query);
    server.send(packet.encode({ type: "response", id, questions }), port, address);
  }).bind(0, "127.0.0.1");
  const silent = createSocket("udp4").bind(0, "127.0.0.1");
  await Promise.all([once(server, "listening"), once(silent, "listening")]);
  t.after(() => {
    server.close();
    silent.close();
  });
  const nameServers = [server, silent].map((socket) => ({ host: "127.0.0.1", port: socket.address().port }));
  const forward = forwarder({ nameServers, forwardParallel: true, log: SILENT, metrics: agentMetrics() });
  const before = await socketsOpen();
  await Promise.all(Array.from({ length: 20 }, (_, id) => forward(question(id), "udp")));
  assert.equal(await socketsOpen(), before);
});
