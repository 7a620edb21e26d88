/** What the application beside an agent, and whoever reaches its ports, can send costs at most what its size suggests. */
import { after, before, beforeEach, describe, test } from "node:test";
import { frame } from "#agent/dns/forward/frames.ts";
import { type MeasuredAgent, startAgent } from "./agent-fixture.ts";
import { assertLinear, doublings } from "./growth.ts";
import { type Place, sendBytes, sendCall, sendDatagrams, sendRequests } from "./send.ts";
import { TEXTS } from "./shapes.ts";
import { DELTA, XDS_SHAPES } from "./xds-shapes.ts";

const SECRETS = "/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets";
/** As the server of STS accepts. */
const MAX_FORM_BYTES = 256 * 1024;
const EXCHANGE = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=";

/** Questions about names of the mesh, and questions that are none. */
const QUESTIONS: Readonly<Record<string, Buffer>> = {
  "a name of the mesh": question(label("s1") + label("example") + label("com")),
  "many short labels": question(label("a").repeat(120) + label("s1")),
  "long labels": question(label("a".repeat(63)).repeat(3) + label("b".repeat(50))),
  "odd labels": question(label("\xe9.").repeat(60)),
  "a name of pointers": question("\xc0\x0c"),
  "a name without end": Buffer.concat([question(""), Buffer.alloc(400, 1)]),
  "many records": Buffer.concat([
    header(1, 0xffff),
    Buffer.from(`${label("a")}\0\0\x01\0\x01`, "latin1"),
    Buffer.alloc(400),
  ]),
};
const KNOWN = question(label("s2") + label("example") + label("com"), 0x7777);
const skip = process.getuid?.() !== 0 && "needs root";

describe("the agent", { skip, timeout: 600_000 }, () => {
  let agent: MeasuredAgent;
  before(async () => {
    agent = await startAgent();
  });
  beforeEach(async () => {
    if (!agent.program.hasEnded && !agent.plane.program.hasEnded) return;
    await agent[Symbol.asyncDispose]();
    agent = await startAgent();
  });
  after(() => agent?.[Symbol.asyncDispose]());

  for (const [name, key, folder] of [
    ["15020", "status", "/app-health"],
    ["15004", "debug", "/debug"],
    ["STS", "sts", "/stsStatus"],
  ] as const) {
    for (const [shape, text] of Object.entries(TEXTS)) {
      test(`${name}: a path and a query of ${shape}`, () =>
        assertLinear({
          sizes: doublings(1_000, 4_000),
          costOf: (size) => {
            const part = encodeURI(text(size));
            const input = { place: { port: agent.ports[key] }, path: `${folder}/${part}?${part}` };
            return agent.program.cost(() => sendRequests(input, key === "debug" ? 10 : 50));
          },
        }));
    }
    test(`${name}: many headers`, () =>
      assertLinear({
        sizes: doublings(125, 1_000),
        costOf: (count) => {
          const headers = Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, "v"]));
          const input = { place: { port: agent.ports[key] }, path: "/healthz/none", headers };
          return agent.program.cost(() => sendRequests(input, 50));
        },
      }));
    test(`${name}: a long body`, () =>
      assertLinear({
        sizes: doublings(1024 * 1024, 8 * 1024 * 1024),
        costOf: (size) => {
          const input = { place: { port: agent.ports[key] }, method: "POST", path: "/none", body: Buffer.alloc(size) };
          return agent.program.cost(() => sendRequests(input, 1));
        },
      }));
  }

  for (const [shape, text] of Object.entries(TEXTS)) {
    test(`STS: a token of ${shape}`, () =>
      assertLinear({
        sizes: doublings(8 * 1024, MAX_FORM_BYTES / 2),
        costOf: (size) => {
          const headers = { "content-type": "application/x-www-form-urlencoded" };
          const body = EXCHANGE + text(size);
          const input = { place: { port: agent.ports.sts }, method: "POST", path: "/token", headers, body };
          return agent.program.cost(() => sendRequests(input, 4));
        },
      }));
  }

  for (const [shape, bytes] of Object.entries(QUESTIONS)) {
    test(`15053/udp: ${shape}`, () =>
      assertLinear({
        sizes: doublings(500, 4_000),
        costOf: (count) => {
          const questions = new Array<Buffer>(count).fill(bytes);
          return agent.program.cost(() => sendDatagrams(agent.ports.dns, questions, KNOWN));
        },
      }));
    test(`15053/tcp: ${shape}`, () =>
      assertLinear({
        sizes: doublings(500, 4_000),
        costOf: (count) => {
          const frames = Buffer.concat(new Array<Buffer>(count).fill(frame(bytes)));
          return agent.program.cost(() => sendBytes({ port: agent.ports.dns }, frames));
        },
      }));
  }
  test("15053/tcp: one long message", () =>
    assertLinear({
      sizes: doublings(8 * 1024, 32 * 1024),
      costOf: (size) => {
        const odd = Buffer.concat([header(1, 0), Buffer.from(label("\xe9.").repeat(size / 3), "latin1")]);
        const frames = Buffer.concat(new Array<Buffer>(20).fill(frame(odd)));
        return agent.program.cost(() => sendBytes({ port: agent.ports.dns }, frames));
      },
    }));

  for (const [shape, { sizes, messages, method = DELTA }] of Object.entries(XDS_SHAPES)) {
    test(`XDS: ${shape}`, () => call(sizes, messages, () => ({ place: { path: agent.xds }, method })));
    test(`SDS: ${shape}`, () => call(sizes, messages, () => ({ place: { path: agent.sds }, method: SECRETS })));
  }
  for (const shape of ["many unknown fields", "unclosed groups", "many names"]) {
    test(`15004: ${shape}`, () => {
      const { sizes = [], messages = () => [] } = XDS_SHAPES[shape] ?? {};
      return call(sizes, messages, () => ({ place: { port: agent.ports.debug }, method: DELTA }));
    });
  }

  function call(
    sizes: readonly number[],
    messages: (size: number) => readonly Uint8Array[],
    target: () => { readonly place: Place; readonly method: string },
  ): Promise<void> {
    return assertLinear({
      sizes,
      costOf: (size) => {
        const sent = messages(size);
        return agent.program.cost(() => sendCall({ ...target(), messages: sent }));
      },
    });
  }
});

function header(questions: number, answers: number, id = 0x1234): Buffer {
  const bytes = Buffer.alloc(12);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt16BE(0x0100, 2);
  bytes.writeUInt16BE(questions, 4);
  bytes.writeUInt16BE(answers, 6);
  return bytes;
}

function label(text: string): string {
  return String.fromCharCode(text.length) + text;
}

function question(name: string, id?: number): Buffer {
  return Buffer.concat([header(1, 0, id), Buffer.from(`${name}\0\0\x01\0\x01`, "latin1")]);
}
