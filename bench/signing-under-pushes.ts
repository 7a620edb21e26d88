/**
 * The whole control plane on one core: it signs certificates while configuration changes and goes to many sidecars.
 *   node bench/signing-under-pushes.ts [REQUESTS_PER_SECOND]
 */
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentMetrics } from "#agent/metrics.ts";
import { citadelClient } from "#agent/sds/ca/ca-client.ts";
import { SILENT } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { Callers } from "./callers.ts";
import { MeshFolder, serviceHost } from "./mesh-folder.ts";
import { Sidecars } from "./sidecars.ts";

const DISCOVERY = join(import.meta.dirname, "../src/bin/pilot-discovery.ts");
const SHAPE = { services: 200, proxies: 20, own: false };
/** Between two changes of endpoints; every tenth change is one of a route. */
const CHANGE_EVERY_MS = 50;

const SECONDS = 5;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;

interface Figures {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the control plane for each certificate, with all that it does meanwhile: below 10 a core gives 100 a second. */
  readonly cpuMs: number;
  /** What the sidecars got meanwhile. */
  readonly pushedMegabytes: number;
}

/** Requests with tokens over TLS, as agents send them. */
async function measure(perSecond: number): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "bench-signing-"));
  const mesh = new MeshFolder(join(folder, "config"), SHAPE);
  mesh.prepare();
  using callers = await Callers.start();
  const controlPlane = spawn("taskset", ["-c", "0", process.execPath, DISCOVERY, ...flags(folder)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: {
      ...process.env,
      ROOT_CA_DIR: join(folder, "ca"),
      JWT_RULE: callers.rule,
      CA_REQUESTS_PER_SECOND_PER_IDENTITY: "0",
    },
  });
  try {
    let said = "";
    await new Promise<void>((resolve) => {
      controlPlane.stdout.on("data", (chunk) => {
        said += chunk;
        if (said.includes("control plane is ready")) resolve();
      });
    });
    const addressOf = (what: string) => new RegExp(`starting ${what} at (\\S+)`).exec(said)?.[1] ?? "";
    using sidecars = new Sidecars(addressOf("gRPC discovery service"), SHAPE);
    const connected = sidecars.everyone(CLUSTER_TYPE, Buffer.from(serviceHost(0)));
    sidecars.connect();
    await connected;
    const token = await callers.token("default");
    const upstream = {
      address: addressOf("secure gRPC discovery service").replace("127.0.0.1", "localhost"),
      rootCertificate: join(folder, "ca/root-cert.pem"),
      subjectAltName: "localhost",
      headers: {},
      fetchToken: async () => token,
    };
    const sign = citadelClient({ upstream, log: SILENT, retries: agentMetrics().signRetries }, "");
    const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const csr = certificateRequest({ ...keys, identity: "spiffe://cluster.local/ns/default/sa/bench" });
    const ask = async () => {
      const startedAt = performance.now();
      await sign({ csr, ttlSeconds: 3600 }, AbortSignal.timeout(60_000));
      return performance.now() - startedAt;
    };
    const before = sidecars.receivedBytes;
    using _changing = changes(mesh);
    const figures = await steadily({ ask, perSecond, cpuMs: () => cpuMs(controlPlane.pid ?? 0) });
    return { ...figures, pushedMegabytes: (sidecars.receivedBytes - before) / 1e6 };
  } finally {
    const exited = once(controlPlane, "exit");
    if (controlPlane.exitCode === null && controlPlane.kill("SIGKILL")) await exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

function flags(folder: string): readonly string[] {
  const listen = [
    "--grpcAddr=127.0.0.1:0",
    "--secureGRPCAddr=127.0.0.1:0",
    "--httpAddr=",
    "--httpsAddr=",
    "--monitoringAddr=",
  ];
  return ["discovery", "--registries=", "--configDir", join(folder, "config"), ...listen];
}

/** Changes the mesh until it is disposed of. */
function changes(mesh: MeshFolder): Disposable {
  let count = 0;
  const timer = setInterval(() => {
    count++;
    if (count % 10 === 0) mesh.putRoute(0, count);
    else mesh.putService(count % SHAPE.services, `10.100.${count >> 8}.${count & 255}`);
  }, CHANGE_EVERY_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

interface Requests {
  /** Milliseconds until the answer. */
  readonly ask: () => Promise<number>;
  readonly perSecond: number;
  /** Of the control plane, so far. */
  readonly cpuMs: () => number;
}

/** Asks so many times each second, whether or not the earlier ones are answered. */
async function steadily({ ask, perSecond, cpuMs }: Requests): Promise<Omit<Figures, "pushedMegabytes">> {
  for (let i = 0; i < 10; i++) await ask();
  const cpu = cpuMs();
  const startedAt = performance.now();
  const asked: Promise<number>[] = [];
  for (let i = 0; i < SECONDS * perSecond; i++) {
    const dueMs = startedAt + (i * 1000) / perSecond - performance.now();
    if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
    asked.push(ask());
  }
  const times = (await Promise.all(asked)).sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(times.length * share)] ?? Number.NaN;
  return {
    perSecond: (times.length * 1000) / (performance.now() - startedAt),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    cpuMs: (cpuMs() - cpu) / times.length,
  };
}

function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}

const figures = await measure(Number(process.argv[2] ?? 100));
const row = (what: string, value: number, unit: string) => console.log(`${what.padEnd(52)}${value.toFixed(1)} ${unit}`);
row("certificates beside 20 changes a second, one core", figures.perSecond, "/s");
row("  half of the answers", figures.p50Ms, "ms");
row("  99 of 100", figures.p99Ms, "ms");
row("  CPU of each, pushes included", figures.cpuMs, "ms");
row("  pushed meanwhile", figures.pushedMegabytes, "MB");
