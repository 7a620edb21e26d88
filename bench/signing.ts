/** What a certificate authority needs for many agents: each asks over a connection of its own, as agents do. */
import { type ChildProcess, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agentMetrics } from "#agent/metrics.ts";
import { citadelClient } from "#agent/sds/ca/ca-client.ts";
import { SILENT } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { percentile } from "./percentile.ts";

export interface SigningFigures {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the authority, for each request. */
  readonly cpuMs: number;
}

const SECONDS = 5;
/** Clock ticks per second of /proc, on every Linux that Node runs on. */
const TICKS = 100;

/** Sends so many requests each second, whether or not the earlier ones are answered. */
export async function measureSigning(perSecond: number): Promise<SigningFigures> {
  const folder = mkdtempSync(join(tmpdir(), "bench-signing-"));
  const authority = spawn(process.execPath, [join(import.meta.dirname, "signing-ca.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const said = await firstWords(authority);
    const address = said.slice(0, said.indexOf("\n"));
    const rootCertificate = join(folder, "root.pem");
    writeFileSync(rootCertificate, said.slice(address.length + 1));
    const upstream = { address, rootCertificate, subjectAltName: "localhost", headers: {}, fetchToken: async () => "" };
    const sign = citadelClient({ upstream, log: SILENT, retries: agentMetrics().signRetries }, "");
    const keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const csr = certificateRequest({ ...keys, identity: "spiffe://cluster.local/ns/default/sa/bench" });
    const ask = async () => {
      const startedAt = performance.now();
      await sign({ csr, ttlSeconds: 3600 }, AbortSignal.timeout(60_000));
      return performance.now() - startedAt;
    };
    for (let i = 0; i < 10; i++) await ask();
    const cpu = cpuMs(authority);
    const startedAt = performance.now();
    const asked: Promise<number>[] = [];
    for (let i = 0; i < SECONDS * perSecond; i++) {
      const dueMs = startedAt + (i * 1000) / perSecond - performance.now();
      if (dueMs > 0) await new Promise((resolve) => setTimeout(resolve, dueMs));
      asked.push(ask());
    }
    const times = await Promise.all(asked);
    const seconds = (performance.now() - startedAt) / 1000;
    return {
      perSecond: times.length / seconds,
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      cpuMs: (cpuMs(authority) - cpu) / times.length,
    };
  } finally {
    const exited = once(authority, "exit");
    if (authority.exitCode === null && authority.kill("SIGKILL")) await exited;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** All that it prints until its root certificate is complete. */
async function firstWords({ stdout }: ChildProcess): Promise<string> {
  let said = "";
  for await (const chunk of stdout ?? []) {
    said += chunk;
    if (said.includes("END CERTIFICATE")) return said;
  }
  throw new Error(`the authority ended: ${said}`);
}

function cpuMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS;
}
