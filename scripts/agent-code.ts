/**
 * Keeps the code that V8 makes of the agent's bundle beside it, for the launcher. The agent is started for that, with an
 * Envoy that ends at once, because V8 compiles a function when it first runs. Takes the bundle, and must be run with the
 * flags that the agent runs with: V8 refuses code that was made under others.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
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
rmSync(codeFile(bundle), { force: true });
const script = bundleScript(bundle);
process.on("exit", () => {
  rmSync(folder, { recursive: true, force: true });
  writeFileSync(codeFile(bundle), script.createCachedData());
});
runBundle(bundle, script);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
