/** Clients that ask for more than their share. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import packet from "dns-packet";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { SILENT } from "#lib/log/log.ts";
import { startLocalDns } from "../../../test/support/dns-server.ts";
import { agentMetrics } from "../metrics.ts";
import { ForwardCache } from "./forward/forward-cache.ts";
import { frame } from "./forward/frames.ts";
import { MAX_QUERY_BYTES } from "./message.ts";
import { MeshResolver } from "./resolver.ts";
import { responder } from "./responder.ts";

const OWN = "a.example";

function meshResolver(): MeshResolver {
  const resolver = new MeshResolver({ namespace: "default", domain: "", searchDomains: [] });
  resolver.update(toBinary(NameTableSchema, create(NameTableSchema, { table: { [OWN]: { ips: ["10.0.0.1"] } } })));
  return resolver;
}

const question = (name: string, id = 7) => packet.encode({ type: "query", id, questions: [{ type: "A", name }] });
const rcodeOf = (answer: Buffer | undefined) => answer && answer.readUInt16BE(2) & 15;

test("a client of another machine gets names of the mesh, and no other: the agent is not an open resolver", async () => {
  const respond = responder({
    resolver: meshResolver(),
    nameServers: [{ host: "127.0.0.1", port: 1 }],
    forwardParallel: false,
    mayForward: (address) => address === "10.1.2.3",
    log: SILENT,
    metrics: agentMetrics(),
  });
  for (const transport of ["udp", "tcp"] as const) {
    const stranger = { transport, address: "192.0.2.9" };
    const refused = await respond(question("www.elsewhere.example"), stranger);
    assert.equal(rcodeOf(refused), 5);
    assert.ok((refused?.length ?? 0) <= question("www.elsewhere.example").length, "no amplification");
    assert.equal(rcodeOf(await respond(question(OWN), stranger)), 0);
    assert.equal(rcodeOf(await respond(question("www.elsewhere.example"), { transport, address: "10.1.2.3" })), 2);
  }
});

test("questions that share an answer which does not come are bounded, and others are not refused for them", async (t) => {
  const silent = createSocket("udp4").bind(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => void silent.close());
  const respond = responder({
    resolver: meshResolver(),
    nameServers: [{ host: "127.0.0.1", port: silent.address().port }],
    forwardParallel: false,
    cache: new ForwardCache({ count: () => undefined }),
    log: SILENT,
    metrics: agentMetrics(),
  });
  const client = { transport: "udp", address: "127.0.0.1" } as const;
  let failed = 0;
  for (let id = 0; id < 5_000; id++)
    void Promise.resolve(respond(question("slow.example", id), client)).then((answer) => {
      assert.equal(rcodeOf(answer), 2);
      failed++;
    });
  await new Promise(setImmediate);
  assert.equal(failed, 5_000 - 64);
  assert.equal(rcodeOf(await respond(question(OWN), client)), 0, "names of the mesh are answered all the same");
  const other = Promise.resolve(respond(question("other.example"), client)).then(() => "failed");
  assert.equal(await Promise.race([other, new Promise((resolve) => setImmediate(resolve, "waits"))]), "waits");
});

test("a question above the limit has no answer, and a long odd name is refused", async () => {
  const respond = responder({
    resolver: meshResolver(),
    nameServers: [],
    forwardParallel: false,
    log: SILENT,
    metrics: agentMetrics(),
  });
  const client = { transport: "tcp", address: "127.0.0.1" } as const;
  const long = Buffer.concat([question(OWN), Buffer.alloc(MAX_QUERY_BYTES)]);
  assert.equal(respond(long, client), undefined);
  const label = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 0xe9)]);
  const odd = Buffer.concat([
    question(OWN).subarray(0, 12),
    ...Array<Buffer>(5).fill(label),
    Buffer.from([0, 0, 1, 0, 1]),
  ]);
  assert.equal(rcodeOf(await respond(odd, client)), 1);
});

/** Resolves when the other side has cut the connection, with or without a reset. */
function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.resume().on("close", resolve));
}

async function client(t: TestContext, port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").on("error", () => undefined);
  t.after(() => socket.destroy());
  await once(socket, "connect");
  return socket;
}

async function serve(t: TestContext, tcpIdleMs = 60_000) {
  const server = await startLocalDns({ resolver: meshResolver(), nameServers: [], tcpIdleMs });
  t.after(() => server.close());
  return server;
}

test("a TCP client that announces a message above the limit is cut off", async (t) => {
  const { port } = await serve(t);
  const socket = await client(t, port);
  socket.write(Buffer.from([0xff, 0xff]));
  await closed(socket);
});

test("a TCP client that sends its question byte by byte is cut off in time", { timeout: 20_000 }, async (t) => {
  const { port } = await serve(t, 300);
  const socket = await client(t, port);
  const bytes = [...frame(question(OWN))];
  const timer = setInterval(() => socket.write(Buffer.of(bytes.shift() ?? 0)), 50);
  t.after(() => clearInterval(timer));
  socket.write(Buffer.of(bytes.shift() ?? 0));
  await closed(socket);
  assert.ok(bytes.length > 0, "before it was complete");
});

test("a new TCP client is served while others hold all connections", async (t) => {
  const { port } = await serve(t);
  for (let held = 0; held < 1_100; held += 100) await Promise.all(Array.from({ length: 100 }, () => client(t, port)));
  const socket = await client(t, port);
  socket.write(frame(question(OWN)));
  const [answer] = (await once(socket, "data")) as [Buffer];
  assert.equal(rcodeOf(answer.subarray(2)), 0);
});
