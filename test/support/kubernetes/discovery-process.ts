/** Our control plane as a process, on an API server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../fake-control-plane.ts";
import type { ApiServer } from "./api-server.ts";

const DISCOVERY = join(import.meta.dirname, "../../../src/bin/pilot-discovery.ts");

export interface DiscoveryProcess extends AsyncDisposable {
  /** All that it has printed. */
  readonly text: () => string;
  /** The address of a service that it has begun, such as `secure gRPC discovery service`. */
  readonly address: (service: string) => Promise<string>;
  readonly isReady: () => Promise<boolean>;
  readonly end: () => Promise<void>;
}

export interface DiscoveryOptions {
  /** Of the account that it runs as; one that may do everything otherwise. */
  readonly token?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts it in a folder of its own. */
export function startDiscovery(server: ApiServer, folder: string, options: DiscoveryOptions = {}): DiscoveryProcess {
  const { token } = options;
  const config = JSON.parse(readFileSync(server.kubeConfig, "utf8"));
  if (token !== undefined) config.users[0].user = { token };
  const kubeConfig = join(folder, "kubeconfig");
  writeFileSync(kubeConfig, JSON.stringify(config));
  const listen = ["http", "grpc", "secureGRPC", "https", "monitoring"].map((name) => `--${name}Addr=127.0.0.1:0`);
  const flags = ["discovery", "--kubeconfig", kubeConfig, "--shutdownDuration=1s", "--ctrlz_port=0", ...listen];
  const env = {
    PATH: process.env.PATH,
    ROOT_CA_DIR: join(folder, "none"),
    POD_NAMESPACE: "istio-system",
    ...options.env,
  };
  const child = spawn(process.execPath, [DISCOVERY, ...flags], { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  const output: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => output.push(String(chunk)));
  const text = () => output.join("");
  const address = async (service: string) => {
    const line = new RegExp(`starting ${service} at (\\S+)`);
    await eventually(`${service} begins`, () => line.test(text()), 60_000);
    return line.exec(text())?.[1] ?? "";
  };
  const end = async () => {
    if (child.exitCode !== null || !child.kill("SIGTERM")) return;
    await once(child, "exit");
  };
  const isReady = async () => (await fetch(`http://${await address("HTTP service")}/ready`)).ok;
  return { text, address, isReady, end, [Symbol.asyncDispose]: end };
}
