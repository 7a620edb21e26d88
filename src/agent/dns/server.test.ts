import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { after, before, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import packet, { type Answer, type DecodedPacket } from "dns-packet";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { type LocalDns, startLocalDns } from "../../../test/support/dns-server.ts";
import { freePort } from "../../../test/support/free-ports.ts";
import { agentMetrics } from "../metrics.ts";
import { MeshResolver } from "./resolver.ts";
import { type DnsServerOptions, startDnsServer } from "./server.ts";
import { openUdp } from "./udp-socket.ts";

const SCOPE = {
  namespace: "default",
  domain: "default.svc.cluster.local",
  searchDomains: ["default.svc.cluster.local", "svc.cluster.local"],
};
const TABLE = toBinary(
  NameTableSchema,
  create(NameTableSchema, {
    table: {
      "httpbin.default.svc.cluster.local": {
        ips: ["10.96.0.1"],
        registry: "Kubernetes",
        shortname: "httpbin",
        namespace: "default",
      },
      "reviews.other.svc.cluster.local": {
        ips: ["10.96.0.2"],
        registry: "Kubernetes",
        shortname: "reviews",
        namespace: "other",
      },
      "dual.example": { ips: ["10.0.0.1", "fd00::1"], registry: "External" },
      "*.wild.example": { ips: ["10.0.0.9"], registry: "External" },
      "many.example": { ips: Array.from({ length: 40 }, (_, i) => `10.1.0.${i}`), registry: "External" },
      "broken.example": { ips: ["not an address"], registry: "External" },
    },
  }),
);

/** A name server that knows `known.example.` and stays silent about `slow.example.`. */
async function fakeNameServer() {
  const asked: string[] = [];
  const reply = (message: Buffer): Buffer | undefined => {
    const query = packet.decode(message);
    const name = query.questions?.[0]?.name ?? "";
    asked.push(name);
    if (name === "slow.example") return undefined;
    const answers: Answer[] = name === "known.example" ? [{ type: "A", name, ttl: 60, data: "192.0.2.1" }] : [];
    return packet.encode({
      type: "response",
      id: query.id,
      flags: answers.length > 0 ? 0 : 3,
      questions: query.questions ?? [],
      answers,
    });
  };
  const udp = createSocket("udp4", (message, { port, address }) => {
    const answer = reply(message);
    if (answer !== undefined) udp.send(answer, port, address);
  });
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  const { port } = udp.address();
  const tcp = createServer((client) => {
    client.on("error", () => client.destroy());
    client.on("data", (chunk) => {
      const answer = reply(chunk.subarray(2));
      if (answer !== undefined)
        client.write(Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 255]), answer]));
    });
  });
  tcp.listen(port, "127.0.0.1");
  await once(tcp, "listening");
  return {
    asked,
    server: { host: "127.0.0.1", port },
    close: () => {
      udp.close();
      tcp.close();
    },
  };
}

async function exchange(port: number, message: Buffer): Promise<Buffer> {
  const socket = createSocket("udp4");
  socket.send(message, port, "127.0.0.1");
  const [answer] = (await once(socket, "message")) as [Buffer];
  socket.close();
  return answer;
}

async function exchangeTcp(port: number, message: Buffer): Promise<Buffer> {
  const socket = connect(port, "127.0.0.1");
  // In two pieces, as a network may deliver it.
  socket.write(Buffer.from([message.length >> 8]));
  socket.write(Buffer.concat([Buffer.from([message.length & 255]), message]));
  let received = Buffer.alloc(0);
  for await (const chunk of socket) {
    received = Buffer.concat([received, chunk]);
    if (received.length >= 2 && received.length >= 2 + received.readUInt16BE(0)) break;
  }
  return received.subarray(2);
}

let upstream: Awaited<ReturnType<typeof fakeNameServer>>;
let server: LocalDns;
let resolver: MeshResolver;

function serve(options: Partial<DnsServerOptions> = {}): Promise<LocalDns> {
  return startLocalDns({ resolver, nameServers: [upstream.server], ...options });
}

before(async () => {
  upstream = await fakeNameServer();
  resolver = new MeshResolver(SCOPE);
  resolver.update(TABLE);
  server = await serve();
});
after(async () => {
  await server.close();
  upstream.close();
});

const question = (name: string, type: "A" | "AAAA" | "MX" = "A", id = 77) =>
  packet.encode({ type: "query", id, flags: packet.RECURSION_DESIRED, questions: [{ type, name }] });

async function ask(name: string, type: "A" | "AAAA" | "MX" = "A", to = server): Promise<DecodedPacket> {
  return packet.decode(await exchange(to.port, question(name, type)));
}

const rcode = ({ flags }: DecodedPacket) => (flags ?? 0) & 15;
const texts = ({ answers }: DecodedPacket) =>
  (answers ?? []).map((answer) => ("data" in answer ? `${answer.name} ${answer.type} ${answer.data}` : answer.type));

test("DNS answers a service under its full and its short names", async () => {
  for (const name of [
    "httpbin",
    "httpbin.default",
    "httpbin.default.svc",
    "httpbin.default.svc.cluster.local",
    "HTTPBIN.Default",
  ]) {
    assert.deepEqual(texts(await ask(name)), [`${name} A 10.96.0.1`]);
  }
});

test("DNS answers with the id, question and flags of the query, as authority, for 30 seconds", async () => {
  const answer = await ask("httpbin.default");
  assert.equal(answer.id, 77);
  assert.deepEqual([answer.flag_qr, answer.flag_aa, answer.flag_rd, answer.flag_tc], [true, true, true, false]);
  assert.equal(answer.answers?.[0] !== undefined && "ttl" in answer.answers[0] ? answer.answers[0].ttl : 0, 30);
});

test("DNS answers a name with the first search domain by a CNAME and the address", async () => {
  assert.deepEqual(texts(await ask("reviews.other.default.svc.cluster.local")), [
    "reviews.other.default.svc.cluster.local CNAME reviews.other",
    "reviews.other A 10.96.0.2",
  ]);
});

test("DNS answers by family, and empty where the host has no address of it", async () => {
  assert.deepEqual(texts(await ask("dual.example")), ["dual.example A 10.0.0.1"]);
  assert.deepEqual(texts(await ask("dual.example", "AAAA")), ["dual.example AAAA fd00::1"]);
  const none = await ask("httpbin.default", "AAAA");
  assert.deepEqual([rcode(none), texts(none)], [0, []]);
});

test("DNS answers hosts of a wildcard under the name that was asked", async () => {
  assert.deepEqual(texts(await ask("a.b.wild.example")), ["a.b.wild.example A 10.0.0.9"]);
});

/** Sends a question over TCP, and gives all that comes until the connection ends. */
async function askAndEnd(port: number, name: string, half: "open" | "closed"): Promise<Buffer> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  const message = question(name);
  socket.write(Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]));
  if (half === "closed") socket.end();
  const chunks = await socket.toArray();
  socket.end();
  return Buffer.concat(chunks);
}

test("DNS keeps TCP clients while they wait, and answers those that have nothing more to say", {
  timeout: 30_000,
}, async (t) => {
  const slow = createServer((client) => {
    client.on("error", () => client.destroy());
    client.on("data", (chunk) => {
      const { id, questions = [] } = packet.decode(chunk.subarray(2));
      const answer = packet.encode({ type: "response", id: id ?? 0, questions });
      const framed = Buffer.concat([Buffer.from([answer.length >> 8, answer.length & 255]), answer]);
      setTimeout(() => client.write(framed), 300);
    });
  });
  slow.listen(0, "127.0.0.1");
  await once(slow, "listening");
  t.after(() => slow.close());
  const address = slow.address();
  const nameServers = [{ host: "127.0.0.1", port: typeof address === "object" && address !== null ? address.port : 0 }];
  const dns = await serve({ nameServers, tcpIdleMs: 50 });
  t.after(() => dns.close());
  for (const half of ["open", "closed"] as const)
    for (const name of ["other.example", "httpbin.default.svc.cluster.local"]) {
      const received = await askAndEnd(dns.port, name, half);
      assert.equal(packet.decode(received.subarray(2)).questions?.[0]?.name, name);
    }
});

test("DNS shortens an answer that is too large for UDP and says so; TCP has all of it", async () => {
  const short = await ask("many.example");
  assert.equal(short.flag_tc, true);
  assert.ok((short.answers?.length ?? 0) < 40);
  const whole = packet.decode(await exchangeTcp(server.port, question("many.example")));
  assert.deepEqual([whole.flag_tc, whole.answers?.length], [false, 40]);
});

test("DNS names the host behind a search domain once, so that its addresses have room", async () => {
  const short = await ask("many.example.default.svc.cluster.local");
  assert.equal(short.flag_tc, true);
  const [cname, ...addresses] = texts(short);
  assert.equal(cname, "many.example.default.svc.cluster.local CNAME many.example");
  // 56 bytes to the end of the question and 26 for the CNAME leave 26 times 16 of 512.
  assert.equal(addresses.filter((text) => text.startsWith("many.example A 10.1.0.")).length, 26);
});

test("DNS counts questions, and not what it cannot take for one", async (t) => {
  const metrics = agentMetrics();
  const dns = await serve({ metrics });
  t.after(() => dns.close());
  const status = question("httpbin");
  status.writeUInt16BE(0x1000, 2);
  const two = question("httpbin");
  two.writeUInt16BE(2, 4);
  for (const message of [status, two, question("httpbin")]) await exchange(dns.port, message);
  assert.match(metrics.text(), /dns_requests_total 1\n/);
});

test("DNS answers as much over UDP as the client says it takes", async () => {
  const message = packet.encode({
    type: "query",
    id: 5,
    questions: [{ type: "A", name: "many.example" }],
    additionals: [
      {
        type: "OPT",
        name: ".",
        udpPayloadSize: 1232,
        flags: 0,
        options: [],
        extendedRcode: 0,
        ednsVersion: 0,
        flag_do: false,
      },
    ],
  });
  const answer = packet.decode(await exchange(server.port, message));
  assert.deepEqual([answer.flag_tc, answer.answers?.length], [false, 40]);
});

test("DNS passes other names, short names of other namespaces and other types on", async () => {
  assert.deepEqual(texts(await ask("known.example")), ["known.example A 192.0.2.1"]);
  assert.equal(rcode(await ask("reviews")), 3);
  assert.equal(rcode(await ask("broken.example")), 3);
  await ask("httpbin.default", "MX");
  assert.ok(upstream.asked.includes("httpbin.default"));
  const overTcp = packet.decode(await exchangeTcp(server.port, question("known.example")));
  assert.deepEqual(texts(overTcp), ["known.example A 192.0.2.1"]);
});

test("DNS asks the next name server when one does not answer, or all at once", async (t) => {
  const nowhere = { host: "127.0.0.1", port: await freePort() };
  for (const forwardParallel of [false, true]) {
    const both = await serve({ nameServers: [nowhere, upstream.server], forwardParallel });
    t.after(() => both.close());
    assert.deepEqual(texts(await ask("known.example", "A", both)), ["known.example A 192.0.2.1"]);
  }
});

test("DNS passes no answer on that cannot be read: the next name server is asked, and at last the question fails", async (t) => {
  const broken = createSocket("udp4", (query, { port, address }) => {
    broken.send(Buffer.concat([query.subarray(0, 2), Buffer.from([0x81, 0x80, 0, 1, 0, 1, 0, 0])]), port, address);
  }).bind(0, "127.0.0.1");
  await once(broken, "listening");
  t.after(() => void broken.close());
  const brokenServer = { host: "127.0.0.1", port: broken.address().port };
  for (const forwardParallel of [false, true]) {
    const both = await serve({ nameServers: [brokenServer, upstream.server], forwardParallel });
    t.after(() => both.close());
    for (let i = 0; i < 4; i++)
      assert.deepEqual(texts(await ask("known.example", "A", both)), ["known.example A 192.0.2.1"]);
    const alone = await serve({ nameServers: [brokenServer], forwardParallel });
    t.after(() => alone.close());
    assert.equal(rcode(await ask("known.example", "A", alone)), 2);
  }
});

test("DNS fails a question that no name server answers", async (t) => {
  const alone = await serve({ nameServers: [] });
  t.after(() => alone.close());
  assert.equal(rcode(await ask("elsewhere.example", "A", alone)), 2);
});

test("DNS fails questions until there is a name table, and is ready with it", async (t) => {
  const late = new MeshResolver(SCOPE);
  const early = await serve({ resolver: late });
  t.after(() => early.close());
  assert.equal(late.ready, false);
  assert.equal(rcode(await ask("httpbin", "A", early)), 2);
  late.update(TABLE);
  assert.equal(late.ready, true);
  assert.deepEqual(texts(await ask("httpbin", "A", early)), ["httpbin A 10.96.0.1"]);
});

test("DNS takes a new name table at once and keeps it when the next one cannot be read", async () => {
  const changing = new MeshResolver(SCOPE);
  const over = await serve({ resolver: changing });
  const tableOf = (ip: string) =>
    toBinary(NameTableSchema, create(NameTableSchema, { table: { "a.example": { ips: [ip] } } }));
  changing.update(tableOf("10.0.0.1"));
  assert.deepEqual(texts(await ask("a.example", "A", over)), ["a.example A 10.0.0.1"]);
  changing.update(tableOf("10.0.0.2"));
  assert.throws(() => changing.update(new Uint8Array([0x0a, 0x7f, 1])));
  assert.deepEqual(texts(await ask("a.example", "A", over)), ["a.example A 10.0.0.2"]);
  await over.close();
});

test("DNS answers a malformed question with an error, and goes on after packets that are none", async () => {
  const broken = question("httpbin");
  broken.writeUInt8(200, 12);
  assert.equal(rcode(packet.decode(await exchange(server.port, broken))), 1);
  const empty = Buffer.from(question("httpbin").subarray(0, 12));
  empty.writeUInt16BE(0, 4);
  assert.equal(rcode(packet.decode(await exchange(server.port, empty))), 1);
  const socket = createSocket("udp4");
  for (const junk of [Buffer.from([1, 2, 3]), packet.encode({ type: "response", id: 1, questions: [] })]) {
    socket.send(junk, server.port, "127.0.0.1");
  }
  socket.send(question("httpbin"), server.port, "127.0.0.1");
  const [answer] = (await once(socket, "message")) as [Buffer];
  socket.close();
  assert.deepEqual(texts(packet.decode(answer)), ["httpbin A 10.96.0.1"]);
});

test("openUdp() and startDnsServer() say where they cannot listen", async (t) => {
  const where = `127.0.0.1:${server.port}`;
  await assert.rejects(openUdp("127.0.0.1", server.port), {
    code: "DNS_NOT_LISTENING",
    message: `Cannot serve DNS on udp ${where}`,
  });
  const udp = await openUdp("127.0.0.1", 0);
  t.after(() => udp.socket.close());
  const options = { resolver, nameServers: [], forwardParallel: false, log: SILENT, metrics: agentMetrics() };
  await assert.rejects(startDnsServer([{ ...udp, port: server.port }], options), {
    code: "DNS_NOT_LISTENING",
    message: `Cannot serve DNS on tcp ${where}`,
  });
});

test("openUdp() takes names, and all addresses", async () => {
  for (const host of ["localhost", "", "::1"]) {
    const { socket, port } = await openUdp(host, 0);
    assert.ok(port > 0, host);
    socket.close();
  }
});

test("questions are told at debug, each in its line", async (t) => {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line), levels: { default: "debug" } });
  const told = await startLocalDns({ resolver, nameServers: [], log });
  t.after(() => told.close());
  await exchange(told.port, question("httpbin"));
  await exchange(told.port, question("a\nb.elsewhere"));
  const [mesh, other, failed] = lines.map((line) => line.split(/\t(?:debug|info)\t/)[1]);
  assert.equal(mesh, "question\tname=httpbin. type=1 protocol=udp mesh=true\n");
  assert.equal(other, "question\tname=a\\u000ab.elsewhere. type=1 protocol=udp mesh=false\n");
  assert.equal(failed, 'upstream failure for "a\\u000ab.elsewhere.": resolv.conf names no server\n');
});

test("what is asked before a socket is served is answered once it is", async (t) => {
  const udp = await openUdp("127.0.0.1", await freePort());
  t.after(() => udp.socket.close());
  const arrived = once(udp.socket, "message");
  const answer = exchange(udp.port, question("httpbin"));
  await arrived;
  const options = { resolver, nameServers: [], forwardParallel: false, log: SILENT, metrics: agentMetrics() };
  const served = await startDnsServer([udp], options);
  t.after(() => served.close());
  assert.deepEqual(texts(packet.decode(await answer)), ["httpbin A 10.96.0.1"]);
});

test("clients that keep their connection do not hold up the end", async () => {
  const ending = await serve();
  const client = connect(ending.port, "127.0.0.1");
  await once(client, "connect");
  const left = once(client.resume(), "close");
  const startedAt = performance.now();
  await Promise.all([ending.close(), left]);
  assert.ok(performance.now() - startedAt < 4_000);
});
