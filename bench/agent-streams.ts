/**
 * What an agent costs while it answers DNS and passes configuration on. Called for each agent that is compared:
 *   await measureAgentStreams(["bin/pilot-agent"])
 */
import { createSocket } from "node:dgram";
import { MessageWriter } from "#lib/wire/write.ts";
import { BenchAgent } from "./agent-process.ts";
import { percentile } from "./percentile.ts";

export interface AgentStreamFigures {
  /** Names of the mesh, asked over UDP by some clients at the same time. */
  readonly dns: {
    readonly perSecond: number;
    readonly p50Ms: number;
    readonly p99Ms: number;
    readonly cpuUsEach: number;
  };
  /** A response of 10 MB on its way to Envoy. */
  readonly push: { readonly p50Ms: number; readonly cpuMs: number };
  readonly restMegabytes: number;
  readonly loadedMegabytes: number;
}

const PUSH_BYTES = 10 * 1024 * 1024;
const PUSHES = 20;
const DNS_SECONDS = 3;
const DNS_CLIENTS = 8;
const IN_FLIGHT = 8;
const HOSTS = 200;
const LOST_MS = 1_000;

export async function measureAgentStreams(command: readonly string[]): Promise<AgentStreamFigures> {
  await using agent = await BenchAgent.start({ command, nameTable: nameTable() });
  const restMegabytes = agent.privateMegabytes();
  const dns = await measureDns(agent);
  const push = await measurePush(agent);
  return { dns, push, restMegabytes, loadedMegabytes: agent.privateMegabytes() };
}

async function measurePush(agent: BenchAgent): Promise<AgentStreamFigures["push"]> {
  // Fields that no reader of listeners knows, as many small ones as a real push has.
  const field = new MessageWriter().bytes(100, Buffer.alloc(1_000, 7)).finish();
  const value = Buffer.concat(Array.from({ length: Math.floor(PUSH_BYTES / field.length) }, () => field));
  await agent.push(value);
  const times: number[] = [];
  const cpu = agent.cpuMs();
  for (let i = 0; i < PUSHES; i++) {
    const startedAt = performance.now();
    const received = await agent.push(value);
    if (received < value.length) throw new Error(`${received} bytes came of ${value.length}`);
    times.push(performance.now() - startedAt);
  }
  return { p50Ms: percentile(times, 0.5), cpuMs: (agent.cpuMs() - cpu) / PUSHES };
}

async function measureDns(agent: BenchAgent): Promise<AgentStreamFigures["dns"]> {
  const stop = performance.now() + DNS_SECONDS * 1000;
  const cpu = agent.cpuMs();
  const startedAt = performance.now();
  const clients = Array.from({ length: DNS_CLIENTS }, () => dnsClient(agent.dnsPort, stop));
  const times = (await Promise.all(clients)).flat();
  const seconds = (performance.now() - startedAt) / 1000;
  return {
    perSecond: times.length / seconds,
    p50Ms: percentile(times, 0.5),
    p99Ms: percentile(times, 0.99),
    cpuUsEach: ((agent.cpuMs() - cpu) * 1000) / times.length,
  };
}

/** Keeps some questions on their way until the time is over; the times of all answers. */
function dnsClient(port: number, stop: number): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const socket = createSocket("udp4");
    const times: number[] = [];
    const sentAt: number[] = [];
    let running = 0;
    let next = 0;
    const send = () => {
      const id = next++ % 65_536;
      sentAt[id] = performance.now();
      running++;
      socket.send(question(id, hostName(next % HOSTS)));
    };
    socket.on("error", reject);
    socket.on("message", (message) => {
      times.push(performance.now() - (sentAt[message.readUInt16BE(0)] ?? 0));
      if ((message.readUInt16BE(2) & 15) !== 0) reject(new Error("a name of the table is not answered"));
      running--;
      if (performance.now() < stop) send();
      else if (running === 0) socket.close();
    });
    socket.connect(port, "127.0.0.1", () => {
      for (let i = 0; i < IN_FLIGHT; i++) send();
    });
    // Packets may be lost under load; what is missing at the end is not waited for.
    const late = setTimeout(() => socket.close(), stop - performance.now() + LOST_MS);
    socket.on("close", () => {
      clearTimeout(late);
      resolve(times);
    });
  });
}

function hostName(index: number): string {
  return `service-${index}.default.svc.cluster.local`;
}

function nameTable(): Uint8Array {
  const writer = new MessageWriter();
  for (let i = 0; i < HOSTS; i++) {
    const info = new MessageWriter().string(1, `10.96.0.${i}`).string(2, "Kubernetes").string(3, `service-${i}`);
    const entry = new MessageWriter().string(1, hostName(i)).bytes(2, info.string(4, "default").finish());
    writer.bytes(1, entry.finish());
  }
  return writer.finish();
}

function question(id: number, name: string): Buffer {
  const labels = name.split(".").flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]);
  const head = Buffer.from([id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([head, ...labels, Buffer.from([0, 0, 1, 0, 1])]);
}
