/** Lookups of the agent's DNS proxy, with a name server behind it as the data describes it. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import packet, { type Answer, type DecodedPacket, type Question } from "dns-packet";
import { FrameReader, frame } from "#agent/dns/forward/frames.ts";
import { MeshResolver } from "#agent/dns/resolver.ts";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { startLocalDns } from "../../support/dns-server.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, readJson } from "../harness.ts";

interface Lookup {
  readonly name: string;
  readonly transport: "udp" | "tcp";
  readonly qname: string;
  readonly qtype: "A" | "AAAA";
  readonly edns0UdpSize: number | null;
  /** Where the numbers that shuffle the answers start. */
  readonly messageId: number | null;
  readonly rcode: number;
  readonly answer: readonly string[];
  readonly authoritative: boolean;
  readonly truncated: boolean;
}

interface Data {
  readonly nameTable: JsonValue;
  readonly proxyNamespace: string;
  readonly proxyDomain: string;
  readonly searchNamespaces: readonly string[];
  /** Records, or a sentence about them, by name; `*` is NXDOMAIN. */
  readonly upstream: Readonly<Record<string, readonly string[] | string>>;
  readonly cases: readonly Lookup[];
}

export const dnsClient: Group = {
  name: "agent DNS proxy lookups",
  cases: async (folder) => {
    const data = await readJson<Data>(folder, "pkg/dns/client/cases.json");
    return (data?.cases ?? []).map((lookup): Case => ({ name: lookup.name, check: () => check(lookup, data as Data) }));
  },
};

async function check(lookup: Lookup, data: Data) {
  const upstream = await nameServer(data);
  let id = lookup.messageId ?? 0;
  const resolver = new MeshResolver(
    { namespace: data.proxyNamespace, domain: data.proxyDomain, searchDomains: data.searchNamespaces },
    () => ++id,
  );
  resolver.update(toBinary(NameTableSchema, fromJson(NameTableSchema, data.nameTable)));
  const server = await startLocalDns({ resolver, nameServers: [upstream.address] });
  try {
    const message = await exchange(lookup, server.port);
    const ordered = lookup.messageId !== null;
    const lines = (message.answers ?? []).map(recordText);
    return compareJson(
      {
        rcode: (message.flags ?? 0) & 15,
        authoritative: message.flag_aa,
        truncated: message.flag_tc,
        answer: ordered ? lines : lines.sort(),
      },
      {
        rcode: lookup.rcode,
        authoritative: lookup.authoritative,
        truncated: lookup.truncated,
        answer: ordered ? lookup.answer : [...lookup.answer].sort(),
      },
    );
  } finally {
    await server.close();
    upstream.close();
  }
}

async function exchange({ transport, qname, qtype, edns0UdpSize }: Lookup, port: number): Promise<DecodedPacket> {
  const message = packet.encode({
    type: "query",
    id: 1,
    flags: packet.RECURSION_DESIRED,
    questions: [{ type: qtype, name: qname }],
    additionals: edns0UdpSize === null ? [] : [optRecord(edns0UdpSize)],
  });
  if (transport === "udp") {
    const socket = createSocket("udp4");
    socket.send(message, port, "127.0.0.1");
    const [answer] = (await once(socket, "message")) as [Buffer];
    socket.close();
    return packet.decode(answer);
  }
  const socket = connect(port, "127.0.0.1");
  socket.write(frame(message));
  const frames = new FrameReader(65_535);
  for await (const chunk of socket) {
    const [answer] = frames.read(chunk as Buffer) ?? [];
    if (answer !== undefined) return packet.decode(answer);
  }
  throw new Error("the connection was closed without an answer");
}

function optRecord(udpPayloadSize: number): Answer {
  return {
    type: "OPT",
    name: ".",
    udpPayloadSize,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
  };
}

function recordText(record: Answer): string {
  if (record.type !== "A" && record.type !== "AAAA" && record.type !== "CNAME") return record.type;
  const data = record.type === "CNAME" ? `${record.data}.` : record.data;
  return [`${record.name}.`, record.ttl, "IN", record.type, data].join("\t");
}

/** The fake name server: records from the data; what it describes in words is 64 records, whole or as many as fit into UDP. */
async function nameServer({ upstream }: Data) {
  const reply = (message: Buffer): Buffer => {
    const query = packet.decode(message);
    const question = query.questions?.[0];
    const name = `${question?.name}.`;
    const known = upstream[name];
    const base = { type: "response", id: query.id, questions: query.questions ?? [] } as const;
    if (Array.isArray(known)) return packet.encode({ ...base, answers: known.map(parseRecord) });
    if (known?.includes("truncated to")) return truncated(base.questions, query.id ?? 0);
    if (known?.includes("A records")) return packet.encode({ ...base, answers: giantRecords() });
    return packet.encode({ ...base, flags: 3 });
  };
  const tcp = createServer((client) => {
    const frames = new FrameReader(65_535);
    client.on("error", () => client.destroy());
    client.on("data", (chunk) => {
      for (const message of frames.read(chunk) ?? []) client.write(frame(reply(message)));
    });
  });
  const udp = await onOnePort(tcp);
  udp.on("message", (message, { port, address }) => udp.send(reply(message), port, address));
  const close = () => {
    udp.close();
    tcp.close();
  };
  return { address: { host: "127.0.0.1", port: udp.address().port }, close };
}

/** A UDP socket on the port that the server then has too. A free port for one may be taken for the other. */
async function onOnePort(tcp: Server, tries = 10): Promise<Socket> {
  const udp = createSocket("udp4");
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  tcp.listen(udp.address().port, "127.0.0.1");
  try {
    await once(tcp, "listening");
    return udp;
  } catch (thrown) {
    udp.close();
    if (tries === 1) throw thrown;
    return onOnePort(tcp, tries - 1);
  }
}

const GIANT_NAME = "aaaaaaaaaaaa.aaaaaa";

function giantRecords(): Answer[] {
  return Array.from(
    { length: 64 },
    (_, i) => ({ type: "A", name: GIANT_NAME, ttl: 30, data: `240.0.0.${i}` }) as const,
  );
}

/** With names compressed, which dns-packet does not do: the name once, then pointers to it. */
function truncated(questions: readonly Question[], id: number): Buffer {
  const whole = packet.encode({ type: "response", id, questions: [...questions], answers: giantRecords().slice(0, 1) });
  const nameAt = packet.encode({ type: "response", id, questions: [...questions] }).length;
  const fixed = whole.subarray(nameAt + GIANT_NAME.length + 2);
  const rest = Array.from({ length: Math.floor((512 - whole.length) / (2 + fixed.length)) }, (_, i) => {
    const record = Buffer.concat([Buffer.from([0xc0 | (nameAt >> 8), nameAt & 255]), fixed]);
    record.writeUInt8(i + 1, record.length - 1);
    return record;
  });
  const message = Buffer.concat([whole, ...rest]);
  message.writeUInt16BE(1 + rest.length, 6);
  message.writeUInt16BE(message.readUInt16BE(2) | packet.TRUNCATED_RESPONSE, 2);
  return message;
}

function parseRecord(text: string): Answer {
  const [name = "", ttl, , type, data = ""] = text.split("\t");
  return { type: type === "AAAA" ? "AAAA" : "A", name: name.replace(/\.$/, ""), ttl: Number(ttl), data };
}
