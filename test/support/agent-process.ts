/** The agent as a process, with a real Envoy, in a folder of its own. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fetchText } from "#agent/http-client.ts";
import { eventually } from "./fake-control-plane.ts";
import { freePorts } from "./free-ports.ts";

export const ENVOY = process.env.ENVOY ?? join(import.meta.dirname, "../../.cache/envoy");
export const AGENT = join(import.meta.dirname, "../../src/bin/pilot-agent.ts");
/** Options of a test that needs an Envoy. */
export const WHERE_ENVOY = { skip: existsSync(ENVOY) ? false : `no Envoy at ${ENVOY}`, timeout: 180_000 };

export interface AgentPorts {
  readonly status: number;
  readonly admin: number;
  readonly envoyStatus: number;
  readonly envoyPrometheus: number;
}

/** The files that an agent finds in its pod. */
export function writePodFiles(folder: string, rootPem: string): void {
  for (const sub of ["var/run/secrets/tokens", "var/run/secrets/istio", "etc/istio/pod", "etc/istio/config"])
    mkdirSync(join(folder, sub), { recursive: true });
  writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), "token");
  writeFileSync(join(folder, "var/run/secrets/istio/root-cert.pem"), rootPem);
  writeFileSync(join(folder, "etc/istio/pod/labels"), 'app="httpbin"\n');
}

export async function agentPorts(): Promise<AgentPorts> {
  const [status = 0, admin = 0, envoyStatus = 0, envoyPrometheus = 0] = await freePorts(4);
  return { status, admin, envoyStatus, envoyPrometheus };
}

/** The environment of an agent on these ports, without that of the test. */
export function agentEnvironment(
  { status, admin, envoyStatus, envoyPrometheus }: AgentPorts,
  { proxyConfig, ...env }: Readonly<Record<string, string>> & { readonly proxyConfig: string },
): Record<string, string> {
  const config = {
    binaryPath: ENVOY,
    concurrency: 1,
    statusPort: status,
    proxyAdminPort: admin,
    ...JSON.parse(proxyConfig),
  };
  return {
    POD_NAME: "httpbin-1",
    POD_NAMESPACE: "default",
    SERVICE_ACCOUNT: "httpbin",
    INSTANCE_IP: "127.0.0.1",
    CLOUD_PLATFORM: "none",
    PROXY_CONFIG: JSON.stringify(config),
    ENVOY_STATUS_PORT: String(envoyStatus),
    ENVOY_PROMETHEUS_PORT: String(envoyPrometheus),
    ...env,
  };
}

export interface AgentProcess {
  readonly child: ChildProcess;
  /** All that it has printed. */
  readonly text: () => string;
  /** Ends it and its Envoy at once. */
  readonly end: () => Promise<void>;
}

export function spawnAgent(
  args: readonly string[],
  options: { readonly cwd: string; readonly env: Record<string, string> },
): AgentProcess {
  const child = spawn(process.execPath, [AGENT, ...args], {
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...options.env },
  });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(String(chunk)));
  return {
    child,
    text: () => output.join(""),
    end: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      // Two different signals, so that neither is lost.
      child.kill("SIGTERM");
      child.kill("SIGINT");
      await once(child, "exit");
    },
  };
}

/** Resolves when Envoy's status port says that the proxy is ready. */
export async function agentReady({ envoyStatus }: AgentPorts, text: () => string): Promise<void> {
  await eventually(
    () => `ready; it printed\n${text()}`,
    async () => {
      const target = { host: "127.0.0.1", port: envoyStatus, path: "/healthz/ready", timeoutMs: 5_000 };
      return (await fetchText(target).catch(() => undefined))?.status === 200;
    },
  );
}
