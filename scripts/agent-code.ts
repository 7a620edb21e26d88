/**
 * Keeps the code that V8 makes of the parts of the agent's bundle beside them, for the launcher. The agent is started for that, until
 * it is ready, because V8 compiles a function when it first runs. Takes the parts, the one that runs itself first and the one that
 * most agents never read last, and must be run with the flags that the agent runs with: V8 refuses code that was made under others.
 */
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Script } from "node:vm";
import { bundleScript, codeFile, runBundle } from "../src/bin/bundle-script.ts";
import { askAsEnvoy, startAdmin, startControlPlane } from "./agent-surroundings.ts";

/** Many times what it takes. What was not reached, for this or another reason, is compiled at each start, which is no failure. */
const PATIENCE_MS = 10_000;

const parts = process.argv.slice(2).map((part) => resolve(part));
const [bundle = "", seldomRead = ""] = [parts[0], parts.at(-1)];
const folder = mkdtempSync(join(tmpdir(), "agent-code-"));
const envoy = join(folder, "envoy");
// It stays until the agent ends it.
writeFileSync(envoy, "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
// Many pods have one, and those who run without Kubernetes write it by hand.
const meshFolder = join(folder, "etc/istio/config");
mkdirSync(meshFolder, { recursive: true });
writeFileSync(join(meshFolder, "mesh"), "defaultConfig:\n  drainDuration: 45s # the default\n");
const statusPort = await freePort();
const proxyAdminPort = await startAdmin();

process.chdir(folder);
process.argv = [process.execPath, bundle, "proxy", "sidecar"];
Object.assign(process.env, {
  POD_NAME: "pod",
  POD_NAMESPACE: "default",
  INSTANCE_IP: "127.0.0.1",
  CLOUD_PLATFORM: "none",
  PROXY_XDS_DEBUG_VIA_AGENT: "false",
  ENVOY_PROMETHEUS_PORT: String(proxyAdminPort),
  PROXY_CONFIG: JSON.stringify({
    binaryPath: envoy,
    discoveryAddress: await startControlPlane(folder),
    proxyAdminPort,
    statusPort,
  }),
});
for (const part of parts) rmSync(codeFile(part), { force: true });
const scripts = new Map<string, Script>();
process.on("exit", () => {
  rmSync(folder, { recursive: true, force: true });
  // Of a part that a start does not need, V8 at least knows then where its functions are.
  for (const part of parts) writeFileSync(codeFile(part), (scripts.get(part) ?? bundleScript(part)).createCachedData());
  if (!scripts.has(seldomRead)) return;
  console.error(`A usual start reads ${seldomRead}: name what it needs of it among the parts in agent-bundle.ts`);
  process.exitCode = 1;
});
runBundle(bundle, (part) => {
  const script = bundleScript(part);
  scripts.set(part, script);
  return script;
});

await Promise.race([askedUntilReady().catch(console.error), sleep(PATIENCE_MS)]);
// Two different ones: the second ends Envoy at once.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.kill(process.pid, signal);

async function askedUntilReady(): Promise<void> {
  const socket = join(folder, "etc/istio/proxy/XDS");
  while (!existsSync(socket)) await sleep(10);
  await askAsEnvoy(folder, statusPort);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
