/**
 * What an agent costs beside its Envoy: from start to ready, memory at rest, a large scrape, and workloads that share one.
 * Called for each agent that is compared:
 *   await measureAgentStart(["bin/pilot-agent"]); await measureMetricsMerge(["bin/pilot-agent"]);
 *   await measureSharedAgent(["bin/pilot-agent"], 10)
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { send } from "#agent/http-client.ts";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/messages/delta-response.ts";
import { NAME_TABLE_TYPE } from "#protocol/messages/type-urls.ts";
import {
  type AgentPorts,
  agentEnvironment,
  agentPorts,
  agentReady,
  writePodFiles,
} from "../test/support/agent-process.ts";
import {
  eventually,
  type FakeControlPlane,
  type Stream,
  startFakeControlPlane,
} from "../test/support/fake-control-plane.ts";
import {
  curlInside,
  letIn,
  makeWorkload,
  removeNamespace,
  workloadJson,
  writeWorkload,
} from "../test/support/namespaced-workloads.ts";

export interface AgentStartFigures {
  readonly readyMs: number;
  readonly restMegabytes: number;
  readonly scrapedMegabytes: number;
}

export interface MetricsMergeFigures {
  readonly lines: number;
  readonly ms: number;
  readonly cpuMs: number;
  readonly restMegabytes: number;
  readonly peakMegabytes: number;
}

export interface SharedAgentFigures {
  readonly workloads: number;
  readonly megabytes: number;
  readonly megabytesPerWorkload: number;
}

const LINES = 100_000;
const SCRAPES = 10;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;

/** With one Envoy and an empty configuration. `more` is added to the agent's environment. */
export async function measureAgentStart(
  command: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<AgentStartFigures> {
  return withStarted(command, more, async ({ child, ports, startedAt }) => {
    await agentReady(ports, () => "");
    const readyMs = performance.now() - startedAt;
    const restMegabytes = privateMegabytes(child);
    for (let i = 0; i < SCRAPES; i++) await scrape(ports.status);
    return { readyMs, restMegabytes, scrapedMegabytes: privateMegabytes(child) };
  });
}

/** How long an application is held that starts when `wait` of the same agent returns, as in pods that hold it. */
export async function measureHeldMs(
  command: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<number> {
  return withStarted(command, more, async ({ ports, startedAt, folder }) => {
    const url = `http://127.0.0.1:${ports.envoyStatus}/healthz/ready`;
    const [code] = await once(start(command, ["wait", "--url", url], { folder, env: {} }), "exit");
    if (code !== 0) throw new Error(`${command[0]} wait ended with ${code}`);
    return performance.now() - startedAt;
  });
}

interface StartedAgent {
  readonly child: ChildProcess;
  readonly ports: AgentPorts;
  readonly startedAt: number;
  readonly folder: string;
}

async function withStarted<T>(
  command: readonly string[],
  more: Readonly<Record<string, string>>,
  measure: (started: StartedAgent) => Promise<T>,
): Promise<T> {
  return withPlane(async (plane, folder) => {
    const ports = await agentPorts();
    const env = agentEnvironment(ports, {
      proxyConfig: JSON.stringify({ discoveryAddress: plane.address }),
      ...more,
    });
    const startedAt = performance.now();
    const child = start(command, ["proxy", "sidecar"], { folder, env });
    try {
      return await measure({ child, ports, startedAt, folder });
    } finally {
      await end(child);
    }
  });
}

/** A scrape of an application with many lines, without Envoy. */
export async function measureMetricsMerge(command: readonly string[]): Promise<MetricsMergeFigures> {
  const text = Buffer.from(
    Array.from(
      { length: LINES },
      (_, i) => `app_requests_total{path="/item/${i}",code="200",method="GET"} ${i}\n`,
    ).join(""),
  );
  const app = createServer((_, response) => response.writeHead(200, { "content-type": "text/plain" }).end(text));
  await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
  const { port } = app.address() as AddressInfo;
  try {
    const prometheus = JSON.stringify({ scrape: "true", port: String(port), path: "/" });
    const more = { DISABLE_ENVOY: "true", ISTIO_PROMETHEUS_ANNOTATIONS: prometheus };
    return await withStarted(command, more, async ({ child, ports }) => {
      await eventually(
        "a scrape",
        () =>
          scrape(ports.status).then(
            (bytes) => bytes > text.length,
            () => false,
          ),
        30_000,
      );
      return measureScrapes(child, ports.status);
    });
  } finally {
    app.close();
  }
}

async function measureScrapes(child: ChildProcess, port: number): Promise<MetricsMergeFigures> {
  const restMegabytes = privateMegabytes(child);
  let peakMegabytes = restMegabytes;
  const sample = () => {
    peakMegabytes = Math.max(peakMegabytes, privateMegabytes(child));
  };
  const timer = setInterval(sample, 2);
  const cpu = cpuMs(child);
  const startedAt = performance.now();
  for (let i = 0; i < SCRAPES; i++) await scrape(port, sample);
  clearInterval(timer);
  const ms = (performance.now() - startedAt) / SCRAPES;
  return { lines: LINES, ms, cpuMs: (cpuMs(child) - cpu) / SCRAPES, restMegabytes, peakMegabytes };
}

/** Needs root, for network namespaces. */
export async function measureSharedAgent(command: readonly string[], workloads: number): Promise<SharedAgentFigures> {
  return withPlane(async (plane, folder) => {
    letIn(folder);
    const files = join(folder, "workloads");
    mkdirSync(files);
    const id = process.pid.toString(36);
    const made = Array.from({ length: workloads }, (_, i) =>
      makeWorkload(`bench-${id}-${i}`, join(folder, `w${i}`), plane.rootPem),
    );
    const child = start(command, ["serve", files], { folder, env: {} });
    try {
      for (const [i, workload] of made.entries()) writeWorkload(files, `w${i}`, workloadJson(workload, plane.address));
      for (const workload of made)
        await eventually(
          workload.netns,
          () => curlInside(workload, "http://127.0.0.1:15021/healthz/ready").endsWith("200"),
          60_000,
        );
      const megabytes = privateMegabytes(child);
      return { workloads, megabytes, megabytesPerWorkload: megabytes / workloads };
    } finally {
      await end(child);
      for (const workload of made) removeNamespace(workload);
    }
  });
}

/** The least that makes DNS ready. */
const NAMES = toBinary(NameTableSchema, create(NameTableSchema, { table: { "a.example": { ips: ["192.0.2.1"] } } }));

/** A control plane that answers first requests with nothing, which is a configuration too, or with the name table. */
async function withPlane<T>(measure: (plane: FakeControlPlane, folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "bench-agent-"));
  const plane = await startFakeControlPlane({ onStream: answer });
  writePodFiles(folder, plane.rootPem);
  try {
    return await measure(plane, folder);
  } finally {
    plane.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function answer(stream: Stream): void {
  stream.on("error", () => undefined);
  stream.on("data", (bytes: Buffer) => {
    const { typeUrl, nonce } = parseDeltaRequest(bytes);
    if (nonce !== "") return;
    const resources =
      typeUrl === NAME_TABLE_TYPE ? [resourceFrame(typeUrl, { name: "names", version: "1", value: NAMES })] : [];
    const rest = { systemVersion: "1", removed: [], controlPlane: "" };
    stream.write(formatDeltaResponse({ typeUrl, nonce: typeUrl, resources, ...rest }));
  });
}

interface StartOptions {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

function start(
  [program = "", ...first]: readonly string[],
  args: readonly string[],
  { folder, env }: StartOptions,
): ChildProcess {
  return spawn(program, [...first, ...args], { cwd: folder, stdio: "ignore", env: { PATH: process.env.PATH, ...env } });
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((resolve) => child.once("exit", resolve));
  if (child.exitCode !== null) return;
  child.kill("SIGTERM");
  const cut = setTimeout(() => child.kill("SIGINT"), 100);
  const kill = setTimeout(() => child.kill("SIGKILL"), 15_000);
  await gone;
  clearTimeout(cut);
  clearTimeout(kill);
}

async function scrape(port: number, onChunk: () => void = () => undefined): Promise<number> {
  const response = await send({ host: "127.0.0.1", port, path: "/stats/prometheus", timeoutMs: 30_000 });
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    onChunk();
  }
  return bytes;
}

/** Private memory: what the process alone occupies. */
function privateMegabytes({ pid }: ChildProcess): number {
  return Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}

function cpuMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}
