/**
 * What a mesh on one machine takes: from nothing to ready, a change, memory with a shared agent, a call through two
 * sidecars. Needs root. Meshes have names and state folders of their own, and are gone afterwards.
 */
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { BenchMesh } from "./mesh-process.ts";
import { RealIstiod } from "./real-istiod.ts";

export interface MeshStartFigures {
  readonly workloads: number;
  /** From the command to all of them ready, with everything read once before. */
  readonly readySeconds: number;
  /** `up` after a change of one workload. */
  readonly changeSeconds: number;
}

export interface SharedMeshFigures {
  readonly workloads: number;
  readonly readySeconds: number;
  /** Private memory of the agent that they share, for each of them. */
  readonly agentMegabytes: number;
  /** The same with the control plane and the mesh's runner. */
  readonly allMegabytes: number;
}

export interface CallFigures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of both Envoys together, for a thousand calls. */
  readonly cpuMs: number;
}

/** The same calls, one after the other. */
export interface CallComparison {
  readonly direct: CallFigures;
  readonly mizzen: CallFigures;
  /** Under the configuration of a real istiod, when there is one. */
  readonly istio: CallFigures | undefined;
}

const HOST = "w0.bench";
const CALLED = `http://${HOST}:8000/`;
/** The best of some rounds counts: what else the machine does is in all of them, but seldom in each. */
const ROUNDS = 5;
const TURNS = 2;
const CALLS = 1500;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;

const SERVER = `require("node:http").createServer((_, answer) => answer.end("hello")).listen(80);\n`;
/** Prints the time of each call, on one connection. */
const CLIENT = `const { Agent, get } = require("node:http");
const [, , url, count] = process.argv;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
const call = () => new Promise((resolve, reject) => {
  const startedAt = performance.now();
  get(url, { agent }, (answer) => {
    answer.resume().once("end", () => {
      if (answer.statusCode === 200) resolve(performance.now() - startedAt);
      else reject(new Error("status " + answer.statusCode));
    });
  }).once("error", reject);
});
(async () => {
  const times = [];
  for (let i = 0; i < Number(count); i++) times.push(await call());
  console.log(JSON.stringify(times));
})();
`;

/** Meshes of so many small servers, each behind a service. */
export async function measureMeshStart(workloads: number): Promise<MeshStartFigures> {
  await using mesh = await BenchMesh.make({ "server.cjs": SERVER, ...services(workloads) });
  const spec = (greeting: string) => ({
    workloads: Array.from({ length: workloads }, (_, i) => ({
      name: `w${i}`,
      labels: { app: `w${i}` },
      command: ["node", "server.cjs"],
      env: { GREETING: i === 0 ? greeting : "" },
      ports: [80],
      readiness: { httpGet: { port: 80 } },
    })),
  });
  await mesh.up(spec("a"));
  await mesh.down();
  const readySeconds = await mesh.up(spec("a"));
  return { workloads, readySeconds, changeSeconds: await mesh.up(spec("b")) };
}

export async function measureSharedMesh(workloads: number): Promise<SharedMeshFigures> {
  await using mesh = await BenchMesh.make(services(workloads));
  const readySeconds = await mesh.up({
    agents: "shared",
    workloads: Array.from({ length: workloads }, (_, i) => ({
      name: `w${i}`,
      labels: { app: `w${i}` },
      command: ["sleep", "infinity"],
      ports: [80],
    })),
  });
  const { runner, members } = await mesh.status();
  const agent = members.find(({ name }) => name === "w0")?.proxy?.pid ?? 0;
  const istiod = members.find(({ name }) => name === "istiod")?.app?.pid ?? 0;
  const [agentMegabytes, ...others] = await Promise.all([agent, istiod, runner.pid].map(privateMegabytes));
  const sum = others.reduce((total, one) => total + one, agentMegabytes ?? 0);
  return {
    workloads,
    readySeconds,
    agentMegabytes: (agentMegabytes ?? 0) / workloads,
    allMegabytes: sum / workloads,
  };
}

/** `istiod` is the program of a real one. */
export async function measureCalls(istiod: string | undefined): Promise<CallComparison> {
  await using mesh = await BenchMesh.make({ "server.cjs": SERVER, "client.cjs": CLIENT });
  const server = { command: ["node", "server.cjs"], ports: [80], readiness: { httpGet: { port: 80 } } };
  await mesh.up({
    workloads: [
      { name: "w0", labels: { app: "w0" }, ...server },
      { name: "caller", labels: { app: "caller" }, command: ["sleep", "infinity"] },
      { name: "plain", inject: false, command: ["sleep", "infinity"] },
      { name: "bare", inject: false, ...server },
    ],
  });
  await mesh.write("objects.yaml", serviceEntry((await mesh.member("w0")).address));
  await untilAnswered(mesh);
  const direct = await calls(mesh, "plain", `http://${(await mesh.member("bare")).address}/`);
  if (istiod === undefined) return { direct, mizzen: await calls(mesh, "caller", CALLED), istio: undefined };
  // In turn, and as often each: whoever comes later finds everything warm.
  const [mizzen, istio]: [CallFigures[], CallFigures[]] = [[], []];
  for (let turn = 0; turn < TURNS; turn++) {
    mizzen.push(await calls(mesh, "caller", CALLED));
    istio.push(await underIstiod(mesh, istiod));
    await mesh.change("start", "istiod");
    await untilAnswered(mesh);
  }
  return { direct, mizzen: best(mizzen), istio: best(istio) };
}

async function underIstiod(mesh: BenchMesh, istiod: string): Promise<CallFigures> {
  await using _ = await RealIstiod.inPlaceOf(mesh, istiod);
  return await calls(mesh, "caller", CALLED);
}

async function untilAnswered(mesh: BenchMesh): Promise<void> {
  const patience = ["--retry", "50", "--retry-delay", "0", "--retry-all-errors", "--max-time", "30"];
  await mesh.exec("caller", ["curl", "-sS", "-f", ...patience, CALLED]);
}

async function calls(mesh: BenchMesh, from: string, url: string): Promise<CallFigures> {
  const run = async (count: number) => {
    const printed = await mesh.exec(from, ["node", join(mesh.folder, "client.cjs"), url, String(count)]);
    return (JSON.parse(printed) as number[]).toSorted((a, b) => a - b);
  };
  await run(CALLS);
  const envoys = await envoysOf(mesh, ["caller", "w0"]);
  const rounds: CallFigures[] = [];
  for (let i = 0; i < ROUNDS; i++) {
    const cpu = await cpuMs(envoys);
    const times = await run(CALLS);
    const spent = (await cpuMs(envoys)) - cpu;
    const at = (part: number) => times[Math.floor(times.length * part)] ?? 0;
    rounds.push({ p50Ms: at(0.5), p99Ms: at(0.99), cpuMs: (spent * 1000) / CALLS });
  }
  return best(rounds);
}

function best(rounds: readonly CallFigures[]): CallFigures {
  const least = (name: keyof CallFigures) => Math.min(...rounds.map((round) => round[name]));
  return { p50Ms: least("p50Ms"), p99Ms: least("p99Ms"), cpuMs: least("cpuMs") };
}

function services(count: number): Record<string, string> {
  const all = Array.from({ length: count }, (_, i) => ({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: `w${i}`, namespace: "default" },
    spec: { selector: { app: `w${i}` }, ports: [{ name: "http", port: 8000, targetPort: 80 }] },
  }));
  return { "objects.yaml": all.map((object) => JSON.stringify(object)).join("\n---\n") };
}

/** As a service entry, which real istiod reads from files too. */
function serviceEntry(address: string): string {
  return JSON.stringify({
    apiVersion: "networking.istio.io/v1",
    kind: "ServiceEntry",
    metadata: { name: "w0", namespace: "default" },
    spec: {
      hosts: [HOST],
      addresses: ["240.240.9.1"],
      ports: [{ name: "http", number: 8000, targetPort: 80, protocol: "HTTP" }],
      resolution: "STATIC",
      location: "MESH_INTERNAL",
      endpoints: [{ address, labels: { app: "w0", "security.istio.io/tlsMode": "istio" }, serviceAccount: "default" }],
    },
  });
}

async function envoysOf(mesh: BenchMesh, names: readonly string[]): Promise<readonly number[]> {
  const wanted = await Promise.all(
    names.map(async (name) => {
      const { shell } = await mesh.member(name);
      return `net:[${(await stat(join("/run/netns", shell.place.netns))).ino}]`;
    }),
  );
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const isEnvoy = await Promise.all(
    pids.map(async (pid) => {
      const [name, netns] = await Promise.all([
        readFile(`/proc/${pid}/comm`, "utf8").catch(() => ""),
        readlink(`/proc/${pid}/ns/net`).catch(() => ""),
      ]);
      return name.startsWith("envoy") && wanted.includes(netns);
    }),
  );
  return pids.filter((_, i) => isEnvoy[i]);
}

async function cpuMs(pids: readonly number[]): Promise<number> {
  const each = await Promise.all(
    pids.map(async (pid) => {
      const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
      return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
    }),
  );
  return each.reduce((sum, one) => sum + one, 0);
}

/** What the process alone occupies. */
async function privateMegabytes(pid: number): Promise<number> {
  return Number(/RssAnon:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
}
