import assert from "node:assert/strict";
import { test } from "node:test";
import packet, { type Answer, type DecodedPacket, type RecordType } from "dns-packet";
import { isQuery, parseQuery, type Query } from "../message.ts";
import { ForwardCache } from "./forward-cache.ts";

type Answers = Answer[];

const MAX = 65_535;

function question(
  name: string,
  { type = "A" as RecordType, id = 1, flags = packet.RECURSION_DESIRED, opt = {} } = {},
): Query {
  const additionals =
    Object.keys(opt).length === 0
      ? []
      : [
          {
            type: "OPT",
            name: ".",
            udpPayloadSize: 1232,
            flags: 0,
            options: [],
            extendedRcode: 0,
            ednsVersion: 0,
            flag_do: false,
            ...opt,
          } as Answer,
        ];
  const query = parseQuery(packet.encode({ type: "query", id, flags, questions: [{ type, name }], additionals }));
  if (!isQuery(query)) throw new Error("no question");
  return query;
}

function reply(query: Query, answers: Answers, more: { flags?: number; authorities?: Answers } = {}): Buffer {
  const { id = 0, questions = [] } = packet.decode(query.bytes);
  const flags = packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE | (more.flags ?? 0);
  return packet.encode({ type: "response", id, questions, answers, authorities: more.authorities ?? [], flags });
}

const address = (name: string, data: string, ttl = 60): Answer => ({ type: "A", name, ttl, data });
const SOA: Answer = {
  type: "SOA",
  name: "example",
  ttl: 600,
  data: { mname: "ns.example", rname: "admin.example", serial: 1, refresh: 2, retry: 3, expire: 4, minimum: 20 },
};

function setUp(options: { maxBytes?: number; patienceMs?: number } = {}) {
  let now = 1_000_000;
  const counts = { hit: 0, miss: 0, stale: 0 };
  let asked = 0;
  const cache = new ForwardCache({ ...options, now: () => now, random: () => 0, count: (result) => counts[result]++ });
  const ask = async (
    query: Query,
    answer: Buffer | Error | (() => Promise<Buffer>),
    maxBytes = MAX,
  ): Promise<DecodedPacket> => {
    const bytes = await cache.answer(query, maxBytes, async () => {
      asked++;
      if (answer instanceof Error) throw answer;
      return typeof answer === "function" ? answer() : answer;
    });
    return packet.decode(bytes);
  };
  return { ask, counts, asked: () => asked, pass: (seconds: number) => (now += seconds * 1000) };
}

const ttlOf = (message: DecodedPacket) => message.answers?.map((record) => ("ttl" in record ? record.ttl : -1));
const dataOf = (message: DecodedPacket) => message.answers?.map((record) => ("data" in record ? record.data : ""));
const NOBODY = new Error("no server");

test("ForwardCache answers again with the id and spelling of the new question, and counts the TTL down", async () => {
  const { ask, asked, pass, counts } = setUp();
  const first = question("www.example");
  const answer = reply(first, [address("www.example", "192.0.2.1", 60)], { flags: packet.AUTHORITATIVE_ANSWER });
  assert.equal((await ask(first, answer)).flag_aa, true);
  pass(25);
  const again = await ask(question("WWW.Example", { id: 99 }), NOBODY);
  assert.deepEqual(
    [again.id, again.questions?.[0]?.name, ttlOf(again), dataOf(again)],
    [99, "WWW.Example", [35], ["192.0.2.1"]],
  );
  assert.equal(again.flag_aa, false, "a kept answer is nobody's authority");
  pass(34);
  assert.deepEqual(ttlOf(await ask(first, NOBODY)), [1]);
  pass(1);
  await ask(first, answer);
  assert.equal(asked(), 2);
  assert.deepEqual(counts, { hit: 2, miss: 2, stale: 0 });
});

test("ForwardCache keeps an answer only as long as its shortest record, a chain of names included", async () => {
  const { ask, pass, asked } = setUp();
  const query = question("www.example");
  const chain: Answers = [
    { type: "CNAME", name: "www.example", ttl: 5, data: "a.example" },
    address("a.example", "192.0.2.1", 300),
  ];
  await ask(query, reply(query, chain));
  pass(4);
  assert.deepEqual(ttlOf(await ask(query, NOBODY)), [1, 296]);
  pass(1);
  await ask(query, reply(query, chain));
  assert.equal(asked(), 2);
});

test("ForwardCache gives addresses in changing order, each as often as the others", async () => {
  let next = 0;
  const cache = new ForwardCache({ random: () => next++, count: () => undefined });
  const query = question("www.example");
  const addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"];
  const answer = reply(
    query,
    addresses.map((data) => address("www.example", data)),
  );
  await cache.answer(query, MAX, async () => answer);
  const firsts = new Set<unknown>();
  for (let i = 0; i < 40; i++) {
    const data = dataOf(packet.decode(await cache.answer(query, MAX, () => Promise.reject(NOBODY)))) ?? [];
    assert.deepEqual([...data].sort(), addresses);
    firsts.add(data[0]);
  }
  assert.equal(firsts.size, 3);
});

test("ForwardCache keeps that a name, or a type of it, does not exist, as long as the zone says", async () => {
  for (const flags of [0, 3]) {
    const { ask, pass, asked } = setUp();
    const query = question("no.example");
    const none = reply(query, [], { flags, authorities: [SOA] });
    await ask(query, none);
    pass(19);
    const kept = await ask(query, NOBODY);
    assert.deepEqual([(kept.flags ?? 0) & 15, kept.authorities?.length], [flags, 1]);
    pass(1);
    await ask(query, none);
    assert.equal(asked(), 2);
    const { ask: other, asked: askedOther } = setUp();
    const unsigned = reply(query, [], { flags });
    await other(query, unsigned);
    await other(query, unsigned);
    assert.equal(askedOther(), 2, "without the zone's record nobody knows how long");
  }
});

test("ForwardCache never keeps answers that fail, are cut, are for one moment or for one client", async () => {
  const plain = question("www.example");
  const record = [address("www.example", "192.0.2.1")];
  const cookie = question("www.example", { opt: { options: [{ code: 10, data: Buffer.alloc(8) }] } });
  const any = question("www.example", { type: "ANY" as RecordType });
  const notify = question("www.example", { flags: 4 << 11 });
  const cases: [Query, Buffer][] = [
    [plain, reply(plain, [], { flags: 2 })],
    [plain, reply(plain, [], { flags: 5 })],
    [plain, reply(plain, record, { flags: packet.TRUNCATED_RESPONSE })],
    [plain, reply(plain, [address("www.example", "192.0.2.1", 0)])],
    [plain, reply(plain, record).subarray(0, -2)],
    [cookie, reply(cookie, record)],
    [any, reply(any, record)],
    [notify, reply(notify, record)],
  ];
  for (const [index, [query, answer]] of cases.entries()) {
    const { ask, asked } = setUp();
    const send = () => ask(query, answer).catch(() => undefined);
    await send();
    await send();
    assert.equal(asked(), 2, String(index));
  }
});

test("ForwardCache keeps answers with and without EDNS, DNSSEC and checking apart", async () => {
  const { ask, asked } = setUp();
  const kinds = [
    question("www.example"),
    question("www.example", { flags: 0 }),
    question("www.example", { flags: packet.RECURSION_DESIRED | packet.CHECKING_DISABLED }),
    question("www.example", { opt: { flags: 0 } }),
    question("www.example", { opt: { flags: packet.DNSSEC_OK, flag_do: true } }),
    question("www.example", { type: "AAAA" }),
  ];
  for (const query of kinds) await ask(query, reply(query, [address("www.example", "192.0.2.1")]));
  assert.equal(asked(), kinds.length);
});

test("ForwardCache answers with what it had while no server answers, and asks again after a while", async () => {
  const { ask, pass, counts, asked } = setUp();
  const query = question("www.example");
  const answer = reply(query, [address("www.example", "192.0.2.1", 10)]);
  await ask(query, answer);
  pass(11);
  const stale = await ask(query, NOBODY);
  assert.deepEqual([ttlOf(stale), dataOf(stale)], [[30], ["192.0.2.1"]]);
  pass(5);
  await ask(query, answer);
  assert.equal(asked(), 2, "a server that just failed is left in peace");
  pass(26);
  assert.deepEqual(ttlOf(await ask(query, reply(query, [], { flags: 2 }))), [30], "SERVFAIL is no answer");
  pass(31);
  assert.deepEqual(ttlOf(await ask(query, answer)), [10]);
  assert.equal(counts.stale, 3);
  pass(10 + 25 * 3600);
  await assert.rejects(ask(query, NOBODY), NOBODY);
});

test("ForwardCache does not wait long for a slow server when it has an old answer, and takes the new one when it comes", async () => {
  const { ask, pass, counts } = setUp({ patienceMs: 10 });
  const query = question("www.example");
  await ask(query, reply(query, [address("www.example", "192.0.2.1", 10)]));
  pass(11);
  let arrive: (answer: Buffer) => void = () => undefined;
  const slow = () => new Promise<Buffer>((resolve) => (arrive = resolve));
  assert.deepEqual(dataOf(await ask(query, slow)), ["192.0.2.1"]);
  arrive(reply(query, [address("www.example", "192.0.2.9", 10)]));
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(dataOf(await ask(query, NOBODY)), ["192.0.2.9"]);
  assert.deepEqual(counts, { hit: 1, miss: 1, stale: 1 });
});

test("ForwardCache asks once for questions that come together", async () => {
  const { ask, asked } = setUp();
  const queries = [1, 2, 3].map((id) => question("www.example", { id }));
  let arrive: (answer: Buffer) => void = () => undefined;
  const slow = () => new Promise<Buffer>((resolve) => (arrive = resolve));
  const answers = Promise.all(queries.map((query) => ask(query, slow)));
  const [first] = queries;
  if (first !== undefined) arrive(reply(first, [address("www.example", "192.0.2.1")]));
  assert.deepEqual(
    (await answers).map(({ id }) => id),
    [1, 2, 3],
  );
  assert.equal(asked(), 1);
});

test("ForwardCache gives no answer that was cut for UDP to one who asks over TCP at the same time", async () => {
  const { ask, asked } = setUp();
  const query = question("large.example");
  const cut = Promise.withResolvers<Buffer>();
  const overUdp = ask(query, () => cut.promise, 512);
  const overTcp = ask(query, reply(query, [address("large.example", "192.0.2.1")]));
  cut.resolve(reply(query, [], { flags: packet.TRUNCATED_RESPONSE }));
  assert.equal((await overUdp).flag_tc, true);
  assert.deepEqual(dataOf(await overTcp), ["192.0.2.1"]);
  assert.equal(asked(), 2);
});

test("ForwardCache cuts a kept answer that is too large for the client, and says so", async () => {
  const { ask } = setUp();
  const query = question("many.example");
  const many = Array.from({ length: 60 }, (_, i) => address("many.example", `192.0.2.${i}`));
  await ask(query, reply(query, many));
  const cut = await ask(query, NOBODY, 512);
  assert.deepEqual([cut.flag_tc, cut.answers?.length, cut.questions?.length], [true, 0, 1]);
  assert.equal((await ask(query, NOBODY)).answers?.length, 60);
});

test("ForwardCache stays within its size: what was not used for longest goes", async () => {
  const { ask, asked } = setUp({ maxBytes: 2_000 });
  const query = (i: number) => question(`n${i}.example`);
  const answer = (i: number) => reply(query(i), [address(`n${i}.example`, "192.0.2.1")]);
  for (let i = 0; i < 4; i++) await ask(query(i), answer(i));
  await ask(query(0), NOBODY);
  await ask(query(4), answer(4));
  await ask(query(0), NOBODY);
  await assert.rejects(ask(query(1), NOBODY));
  assert.equal(asked(), 6);
});

test("ForwardCache takes answers whose names point at each other, or that are broken anywhere, without harm", async () => {
  const query = question("www.example");
  const good = reply(query, [address("www.example", "192.0.2.1"), address("www.example", "192.0.2.2")]);
  const loop = Buffer.from(good);
  loop.writeUInt16BE(0xc000 | query.questionEnd, query.questionEnd);
  for (const bytes of [loop, ...Array.from({ length: good.length - 12 }, (_, i) => good.subarray(0, 12 + i))]) {
    const { ask } = setUp();
    await ask(query, Buffer.from(bytes)).catch(() => undefined);
    await ask(query, good);
  }
  for (let at = query.questionEnd; at < good.length; at++) {
    const { ask } = setUp();
    const flipped = Buffer.from(good);
    flipped[at] = 0xff;
    await ask(query, flipped).catch(() => undefined);
    await ask(query, flipped).catch(() => undefined);
  }
});
