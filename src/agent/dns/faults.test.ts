import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import packet from "dns-packet";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { startLocalDns } from "../../../test/support/dns-server.ts";
import { agentMetrics } from "../metrics.ts";
import { ForwardCache } from "./forward/forward-cache.ts";
import { FrameReader, frame } from "./forward/frames.ts";
import { MeshResolver } from "./resolver.ts";

type Context = { after(fn: () => void | Promise<void>): void };

async function setUp(t: Context) {
  const resolver = new MeshResolver({ namespace: "default", domain: "default.svc.cluster.local", searchDomains: [] });
  resolver.update(
    toBinary(NameTableSchema, create(NameTableSchema, { table: { "a.example": { ips: ["10.0.0.1"] } } })),
  );
  // A name server that hears everything and says nothing.
  const silent = createSocket("udp4").bind(0, "127.0.0.1");
  await once(silent, "listening");
  let heard = 0;
  silent.on("message", () => heard++);
  const metrics = agentMetrics();
  const server = await startLocalDns({
    resolver,
    nameServers: [{ host: "127.0.0.1", port: silent.address().port }],
    cache: new ForwardCache({ count: (result) => metrics.dnsCache[result].add() }),
    metrics,
  });
  const client = createSocket("udp4");
  t.after(async () => {
    client.close();
    silent.close();
    await server.close();
  });
  return { port: server.port, client, heard: () => heard, metrics };
}

const question = (name: string, id = 1) => packet.encode({ type: "query", id, questions: [{ type: "A", name }] });

/** The answer to a question of ours, whatever came before. */
async function answered(client: Socket, port: number): Promise<number | undefined> {
  // A flood may have filled the kernel's buffers, as it may for anybody: whoever gets no answer asks again.
  const asking = setInterval(() => client.send(question("a.example", 777), port, "127.0.0.1"), 50);
  for (;;) {
    const [bytes] = (await once(client, "message")) as [Buffer];
    if (bytes.readUInt16BE(0) !== 777) continue;
    clearInterval(asking);
    return packet.decode(bytes).answers?.length;
  }
}

test("DNS lives through packets that are broken at any place, and names that point at themselves", async (t) => {
  const { client, port } = await setUp(t);
  const good = question("a.example");
  const broken = [
    ...Array.from({ length: good.length }, (_, end) => good.subarray(0, end)),
    ...Array.from({ length: good.length }, (_, at) => Buffer.from(good).fill(0xff, at, at + 1)),
    Buffer.concat([good.subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
    Buffer.concat([good.subarray(0, 12), Buffer.from([1, 97, 0xc0, 12, 0, 1, 0, 1])]),
    Buffer.alloc(65_000, 63),
  ];
  for (const bytes of broken) client.send(bytes, port, "127.0.0.1");
  assert.equal(await answered(client, port), 1);
});

test("DNS bounds a flood of questions for others, and answers its own names meanwhile", async (t) => {
  const { client, port, heard, metrics } = await setUp(t);
  const socketsOpen = () => process.getActiveResourcesInfo().filter((kind) => kind === "UDPWrap").length;
  const before = socketsOpen();
  for (let i = 0; i < 1_500; i++) {
    client.send(question(`n${i}.elsewhere`, i % 500), port, "127.0.0.1");
    if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(await answered(client, port), 1);
  const open = socketsOpen() - before;
  assert.ok(heard() > 0 && open <= 512, `${open} questions are on their way at the same time`);
  assert.match(metrics.text(), /istio_agent_dns_forward_cache_lookups_total{result="miss"} \d+\n/);
});

test("DNS over TCP survives garbage and a client that asks and never reads", async (t) => {
  const { client, port } = await setUp(t);
  for (const garbage of [
    Buffer.from([0]),
    Buffer.alloc(70_000, 0xff),
    Buffer.from("GET / HTTP/1.1\r\n\r\n"),
    Buffer.from([0, 0, 0, 0]),
  ]) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.end(garbage);
    socket.resume();
    await new Promise((resolve) => socket.on("close", resolve));
  }
  const greedy = connect(port, "127.0.0.1");
  greedy.on("error", () => undefined);
  const many = Buffer.concat(Array.from({ length: 1_000 }, () => frame(question("a.example"))));
  for (let i = 0; i < 200; i++) greedy.write(many);
  assert.equal(await answered(client, port), 1);
  const polite = connect(port, "127.0.0.1");
  polite.write(frame(question("a.example")));
  const [chunk] = (await once(polite, "data")) as [Buffer];
  assert.equal(new FrameReader(512).read(chunk)?.length, 1);
  greedy.destroy();
  polite.destroy();
});
