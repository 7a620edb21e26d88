import assert from "node:assert/strict";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { buffer } from "node:stream/consumers";
import test from "node:test";
import { type Answer, type DecodedPacket, decode, encode, RECURSION_DESIRED } from "dns-packet";
import { meshOf } from "../../../test/support/mesh.ts";
import { dnsAnswer } from "./dns-answer.ts";
import { outsideName } from "./dns-question.ts";
import { type Alias, type HostTable, hostTable } from "./names.ts";
import { serveDns } from "./serve-dns.ts";

const MANY = Array.from({ length: 60 }, (_, i) => `10.0.0.${i + 1}`);
const TABLE: HostTable = new Map<string, readonly string[] | Alias>([
  ["web.shop.svc.cluster.local", ["10.96.0.7"]],
  ["many.shop.svc.cluster.local", MANY],
  ["1.0.0.10.in-addr.arpa", ["10-0-0-1.many.shop.svc.cluster.local"]],
  ["alias.shop.svc.cluster.local", { aliasOf: "web.shop.svc.cluster.local" }],
  ["other.shop.svc.cluster.local", { aliasOf: "alias.shop.svc.cluster.local" }],
  ["outside.shop.svc.cluster.local", { aliasOf: "example.com" }],
  ["gone.shop.svc.cluster.local", { aliasOf: "nobody.shop.svc.cluster.local" }],
  ["round.shop.svc.cluster.local", { aliasOf: "round.shop.svc.cluster.local" }],
]);

const WEB = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.1, selector: {app: web}, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web-1, namespace: shop}
spec: {address: 10.1.2.9, labels: {app: web}}
`;

function question(name: string, type: "A" | "AAAA" | "PTR" = "A"): Buffer {
  return encode({ type: "query", id: 7, flags: RECURSION_DESIRED, questions: [{ type, name }] });
}

function answerTo(query: Buffer, transport: "udp" | "tcp" = "udp"): DecodedPacket & { readonly rcode?: string } {
  const answer = dnsAnswer({ query, table: TABLE, transport });
  assert.ok(answer);
  return decode(answer);
}

test("dnsAnswer() gives the addresses of a name, whatever its case", () => {
  const answer = answerTo(question("WEB.shop.svc.cluster.local"));
  assert.equal(answer.id, 7);
  assert.equal(answer.rcode, "NOERROR");
  assert.deepEqual(
    answer.answers?.map((record) => record.type === "A" && record.data),
    ["10.96.0.7"],
  );
});

test("dnsAnswer() says of a known name that it has no IPv6 address, and of an unknown one that it does not exist", () => {
  const v6 = answerTo(question("web.shop.svc.cluster.local", "AAAA"));
  assert.equal(v6.rcode, "NOERROR");
  assert.deepEqual(v6.answers, []);
  assert.equal(answerTo(question("web.other.svc.cluster.local")).rcode, "NXDOMAIN");
});

test("dnsAnswer() gives the names of an address, and no address for these", () => {
  const { answers = [] } = answerTo(question("1.0.0.10.IN-ADDR.arpa", "PTR"));
  assert.deepEqual(
    answers.map((record) => record.type === "PTR" && record.data),
    ["10-0-0-1.many.shop.svc.cluster.local"],
  );
  assert.deepEqual(answerTo(question("1.0.0.10.in-addr.arpa")).answers, []);
  assert.deepEqual(answerTo(question("web.shop.svc.cluster.local", "PTR")).answers, []);
  assert.equal(answerTo(question("2.0.0.10.in-addr.arpa", "PTR")).rcode, "NXDOMAIN");
});

test("dnsAnswer() gives the addresses of the host that a name is an alias of, and says whose they are", () => {
  const { rcode, answers = [] } = answerTo(question("Other.shop.svc.cluster.local"));
  assert.equal(rcode, "NOERROR");
  assert.deepEqual(answers.map(textOf), [
    "Other.shop.svc.cluster.local CNAME alias.shop.svc.cluster.local",
    "alias.shop.svc.cluster.local CNAME web.shop.svc.cluster.local",
    "web.shop.svc.cluster.local A 10.96.0.7",
  ]);
  assert.equal(answerTo(question("alias.shop.svc.cluster.local", "AAAA")).answers?.length, 1);
});

test("dnsAnswer() says of an alias of nobody that it does not exist, and of one of itself that it has no address", () => {
  assert.equal(answerTo(question("gone.shop.svc.cluster.local")).rcode, "NXDOMAIN");
  const { rcode, answers = [] } = answerTo(question("round.shop.svc.cluster.local"));
  assert.equal(rcode, "NOERROR");
  assert.deepEqual(answers, []);
});

test("hostTable() has the host that an ExternalName service stands for", () => {
  const alias = `---
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: shop}
spec: {type: ExternalName, externalName: API.Example.com.}
`;
  assert.deepEqual(hostTable({ snapshot: meshOf(WEB + alias) }).get("alias.shop.svc.cluster.local"), {
    aliasOf: "api.example.com",
  });
});

test("hostTable() knows services by their addresses, and endpoints by the services they are of", () => {
  const table = hostTable({ snapshot: meshOf(WEB) });
  assert.deepEqual(table.get("1.0.96.10.in-addr.arpa"), ["web.shop.svc.cluster.local"]);
  assert.deepEqual(table.get("9.2.1.10.in-addr.arpa"), ["10-1-2-9.web.shop.svc.cluster.local"]);
});

test("hostTable() knows the workloads of a headless service by names of their own, and no others", () => {
  const workloads = new Map([["10.1.2.9", "web-1"]]);
  const headless = meshOf(WEB.replace("clusterIP: 10.96.0.1", "clusterIP: None"));
  const table = hostTable({ snapshot: headless, workloads });
  assert.deepEqual(table.get("web.shop.svc.cluster.local"), ["10.1.2.9"]);
  assert.deepEqual(table.get("web-1.web.shop.svc.cluster.local"), ["10.1.2.9"]);
  assert.equal(hostTable({ snapshot: meshOf(WEB), workloads }).has("web-1.web.shop.svc.cluster.local"), false);
});

test("dnsAnswer() asks for TCP when the answer does not fit, unless the caller takes larger packets", () => {
  const name = "many.shop.svc.cluster.local";
  const cut = answerTo(question(name));
  assert.ok(cut.flag_tc);
  assert.deepEqual(cut.answers, []);
  assert.equal(answerTo(question(name), "tcp").answers?.length, 60);
  const large = encode({
    type: "query",
    questions: [{ type: "A", name }],
    additionals: [
      {
        type: "OPT",
        name: ".",
        udpPayloadSize: 4096,
        extendedRcode: 0,
        ednsVersion: 0,
        flags: 0,
        flag_do: false,
        options: [],
      },
    ],
  });
  assert.equal(answerTo(large).answers?.length, 60);
});

test("dnsAnswer() drops what is no query", () => {
  const response = encode({ type: "response", questions: [{ type: "A", name: "web" }] });
  for (const query of [Buffer.alloc(0), Buffer.from("GET / HTTP/1.1\r\n\r\n"), Buffer.alloc(12), response]) {
    assert.equal(dnsAnswer({ query, table: TABLE, transport: "udp" }), undefined);
  }
});

test("serveDns() answers over UDP and TCP, and from a new table as soon as it has one", async () => {
  const server = await serveDns({ address: "127.0.0.1", port: 0, table: TABLE });
  try {
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${server.port}`]);
    assert.deepEqual(await resolver.resolve4("web.shop.svc.cluster.local"), ["10.96.0.7"]);
    // Too large for UDP: the resolver comes again by TCP.
    assert.equal((await resolver.resolve4("many.shop.svc.cluster.local")).length, 60);
    server.replace(new Map([["web.shop.svc.cluster.local", ["10.96.0.8"]]]));
    assert.deepEqual(await resolver.resolve4("web.shop.svc.cluster.local"), ["10.96.0.8"]);
    await assert.rejects(resolver.resolve4("many.shop.svc.cluster.local"), { code: "ENOTFOUND" });
  } finally {
    server.close();
  }
});

test("serveDns() holds no port of which it cannot have both sockets", async () => {
  const tcp = createServer().listen(0, "127.0.0.1");
  await once(tcp, "listening");
  const { port } = tcp.address() as AddressInfo;
  await assert.rejects(serveDns({ address: "127.0.0.1", port, table: TABLE }), { code: "EADDRINUSE" });
  tcp.close();
  await once(tcp, "close");
  (await serveDns({ address: "127.0.0.1", port, table: TABLE })).close();
});

test("serveDns() ends a TCP connection on which something else is spoken", async () => {
  const server = await serveDns({ address: "127.0.0.1", port: 0, table: TABLE });
  try {
    const socket = connect(server.port, "127.0.0.1");
    socket.write(Buffer.concat([Buffer.from([0, 5]), Buffer.from("hello")]));
    assert.equal((await buffer(socket)).length, 0);
  } finally {
    server.close();
  }
});

test("outsideName() is a name that only somebody outside the mesh could know", () => {
  assert.equal(outsideName(question("Example.COM"), TABLE), "example.com");
  assert.equal(outsideName(question("my.localhost.example"), TABLE), "my.localhost.example");
  for (const name of [
    ...["web.shop.svc.cluster.local", "gone.shop.svc.cluster.local", "example.com.shop.svc.cluster.local"],
    ...["web.shop.svc", "localhost", "printer.local", "1.0.0.10.in-addr.arpa", "web", "cluster.local", "gone.shop"],
  ]) {
    assert.equal(outsideName(question(name), TABLE), undefined, name);
  }
  assert.equal(outsideName(Buffer.from("GET / HTTP/1.1\r\n\r\n"), TABLE), undefined);
  assert.equal(outsideName(question("outside.shop.svc.cluster.local"), TABLE), "example.com");
  assert.equal(outsideName(question("alias.shop.svc.cluster.local"), TABLE), undefined);
});

test("serveDns() passes questions about the outside on, and says that there was no answer", async () => {
  const ask = async (query: Buffer) => {
    const [asked] = decode(query).questions ?? [];
    if (asked?.name !== "example.com") return undefined;
    return encode({
      type: "response",
      id: 7,
      questions: [asked],
      answers: [{ type: "A", name: asked.name, data: "203.0.113.5" }],
    });
  };
  const server = await serveDns({
    address: "127.0.0.1",
    port: 0,
    table: TABLE,
    outside: { ask: async (query) => withId(await ask(query), query) },
  });
  try {
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${server.port}`]);
    assert.deepEqual(await resolver.resolve4("example.com"), ["203.0.113.5"]);
    assert.deepEqual(await resolver.resolve4("web.shop.svc.cluster.local"), ["10.96.0.7"]);
    assert.deepEqual(await resolver.resolve4("outside.shop.svc.cluster.local"), ["203.0.113.5"]);
    assert.deepEqual(await resolver.resolveCname("outside.shop.svc.cluster.local"), ["example.com"]);
    await assert.rejects(resolver.resolve4("other.example"), { code: "ESERVFAIL" });
  } finally {
    server.close();
  }
});

test("serveDns() tells who asked for the outside where there is no way out", async () => {
  const refused: string[] = [];
  const onRefused = (name: string, from: string) => void refused.push(`${from} ${name}`);
  const server = await serveDns({ address: "127.0.0.1", port: 0, table: TABLE, outside: { onRefused } });
  try {
    const resolver = new Resolver();
    resolver.setServers([`127.0.0.1:${server.port}`]);
    await assert.rejects(resolver.resolve4("example.com"), { code: "ENOTFOUND" });
    await assert.rejects(resolver.resolve4("gone.shop.svc.cluster.local"), { code: "ENOTFOUND" });
    assert.deepEqual(refused, ["127.0.0.1 example.com"]);
  } finally {
    server.close();
  }
});

function textOf(record: Answer): string {
  return "data" in record ? `${record.name} ${record.type} ${record.data}` : record.type;
}

function withId(answer: Buffer | undefined, query: Buffer): Buffer | undefined {
  return answer && Buffer.concat([query.subarray(0, 2), answer.subarray(2)]);
}
