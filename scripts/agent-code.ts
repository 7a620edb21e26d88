/**
 * Keeps the code that V8 makes of the parts of the agent's bundle beside them, for the launcher. The agent is started for that, with an
 * Envoy that ends at once, because V8 compiles a function when it first runs. Takes the bundle, and must be run with the
 * flags that the agent runs with: V8 refuses code that was made under others.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Script } from "node:vm";
import { bundleScript, codeFile, runBundle } from "../src/bin/bundle-script.ts";

const bundle = resolve(process.argv[2] ?? "");
const folder = mkdtempSync(join(tmpdir(), "agent-code-"));
const envoy = join(folder, "envoy");
writeFileSync(envoy, "#!/bin/sh\n", { mode: 0o755 });

process.chdir(folder);
process.argv = [process.execPath, bundle, "proxy", "sidecar"];
Object.assign(process.env, {
  POD_NAME: "pod",
  POD_NAMESPACE: "default",
  INSTANCE_IP: "127.0.0.1",
  CLOUD_PLATFORM: "none",
  PROXY_XDS_DEBUG_VIA_AGENT: "false",
  PROXY_CONFIG: JSON.stringify({
    binaryPath: envoy,
    controlPlaneAuthPolicy: "NONE",
    discoveryAddress: "127.0.0.1:15010",
    statusPort: await freePort(),
  }),
});
const scripts = new Map<string, Script>();
process.on("exit", () => {
  rmSync(folder, { recursive: true, force: true });
  for (const [part, script] of scripts) writeFileSync(codeFile(part), script.createCachedData());
});
runBundle(bundle, (part) => {
  rmSync(codeFile(part), { force: true });
  const script = bundleScript(part);
  scripts.set(part, script);
  return script;
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
