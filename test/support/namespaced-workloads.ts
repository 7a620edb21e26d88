/** Network namespaces with workloads for one agent, for tests and measurements. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ENVOY, writePodFiles } from "./agent-process.ts";

/** Why there can be no namespaces; undefined when there can. */
export const NO_NAMESPACES: string | undefined = process.getuid?.() === 0 ? undefined : "network namespaces need root";

export interface NamespacedWorkload {
  readonly netns: string;
  readonly folder: string;
}

/** A namespace with loopback only, and a folder as an injected pod has it. */
export function makeWorkload(name: string, folder: string, rootPem: string): NamespacedWorkload {
  execFileSync("ip", ["netns", "add", name]);
  execFileSync("ip", ["-n", name, "link", "set", "lo", "up"]);
  mkdirSync(folder, { recursive: true });
  writePodFiles(folder, rootPem);
  for (const path of ["etc/istio/proxy", "var/run/secrets/workload-spiffe-uds"])
    mkdirSync(join(folder, path), { recursive: true, mode: 0o700 });
  return { netns: name, folder };
}

export function removeNamespace({ netns }: NamespacedWorkload): void {
  execFileSync("ip", ["netns", "del", netns]);
}

/** What `pilot-agent serve` reads. */
export function workloadJson({ netns, folder }: NamespacedWorkload, discoveryAddress: string): object {
  const proxyConfig = { binaryPath: ENVOY, concurrency: 1, discoveryAddress, terminationDrainDuration: "0.100s" };
  return {
    folder,
    enter: [
      "nsenter",
      `--net=/run/netns/${netns}`,
      "--",
      "setpriv",
      "--reuid=1337",
      "--regid=1337",
      "--clear-groups",
      "--",
    ],
    env: {
      POD_NAME: netns,
      POD_NAMESPACE: "default",
      SERVICE_ACCOUNT: "httpbin",
      INSTANCE_IP: "127.0.0.1",
      CLOUD_PLATFORM: "none",
      ISTIO_META_DNS_CAPTURE: "true",
      PROXY_CONFIG: JSON.stringify(proxyConfig),
    },
    log: join(folder, "agent.log"),
  };
}

/** Lets the proxy's user reach a folder. */
export function letIn(folder: string): void {
  chmodSync(folder, 0o711);
}

export function writeWorkload(folder: string, name: string, json: object): void {
  writeFileSync(join(folder, `${name}.json`), JSON.stringify(json));
}

/** The answer to a request from inside the namespace. */
export function curlInside({ netns }: NamespacedWorkload, url: string): string {
  const args = ["netns", "exec", netns, "curl", "-s", "--max-time", "5", "-w", "\n%{http_code}", url];
  try {
    return execFileSync("ip", args, { encoding: "utf8" });
  } catch (thrown) {
    return String(thrown);
  }
}
