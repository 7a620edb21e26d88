/**
 * What a running agent shows to others on its machine. A caller of another account asks every endpoint for everything, and must not
 * find the workload's token.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import {
  type AgentProcess,
  agentEnvironment,
  agentPorts,
  spawnAgent,
  writePodFiles,
} from "../../test/support/agent-process.ts";
import { eventually, startFakeControlPlane, temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { DEBUG_SOCKET } from "./debug-socket/path.ts";

const TOKEN = "service-account-token-that-nobody-else-may-have";
const STRANGER = 12_345;

interface Running {
  readonly folder: string;
  readonly agent: AgentProcess;
}

/** An agent with all of its endpoints open, which has shown its token to the control plane. */
async function agentWithToken(
  t: TestContext,
  flags: readonly string[],
  more: Readonly<Record<string, string>> = { DISABLE_ENVOY: "true" },
): Promise<Running> {
  const shown: unknown[] = [];
  const plane = await startFakeControlPlane({
    onStream: (stream) => {
      shown.push(stream.metadata.get("authorization")[0]);
      stream.end();
    },
  });
  t.after(() => plane.close());
  const folder = temporaryFolder(t);
  writePodFiles(folder, plane.rootPem);
  const token = join(folder, "var/run/secrets/tokens/istio-token");
  writeFileSync(token, TOKEN);
  chmodSync(token, 0o600);
  const [dns, tap, sts] = await freePorts(3);
  const env = agentEnvironment(await agentPorts(), {
    proxyConfig: JSON.stringify({ discoveryAddress: plane.address, binaryPath: idleEnvoy(folder) }),
    ISTIO_META_DNS_CAPTURE: "true",
    DNS_PROXY_ADDR: `127.0.0.1:${dns}`,
    PROXY_XDS_DEBUG_VIA_AGENT_PORT: String(tap),
    ...more,
  });
  const agent = spawnAgent(["proxy", "sidecar", `--stsPort=${sts}`, ...flags], { cwd: folder, env });
  t.after(agent.end);
  await eventually(
    () => `open ports; it printed\n${agent.text()}`,
    () => listeningPorts(agent).length >= 4,
    30_000,
  );
  // The tap shows the token to the control plane, so that it is in memory.
  await eventually("the token", async () => {
    await fetch(`http://127.0.0.1:${tap}/debug/syncz`, { signal: AbortSignal.timeout(1_000) }).catch(() => undefined);
    return shown.includes(`Bearer ${TOKEN}`);
  });
  return { folder, agent };
}

/** A program that stays until it is killed. */
function idleEnvoy(folder: string): string {
  const path = join(folder, "idle-envoy");
  writeFileSync(path, "#!/bin/sh\nexec sleep 600\n", { mode: 0o755 });
  return path;
}

/** TCP ports on which a process listens, as the kernel knows them. */
function listeningPorts(agent: AgentProcess): readonly number[] {
  return listeners(agent).map(({ port }) => port);
}

function listeners({ child }: AgentProcess): readonly { readonly address: string; readonly port: number }[] {
  const folder = `/proc/${child.pid}/fd`;
  const sockets = new Set(readdirSync(folder).map((name) => linkTarget(join(folder, name))));
  const lines = ["tcp", "tcp6"].flatMap((table) => readFileSync(`/proc/net/${table}`, "utf8").split("\n").slice(1));
  return lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode] = line.trim().split(/ +/);
    const listens = state === "0A" && sockets.has(`socket:[${inode}]`);
    const [address = "", port = ""] = local.split(":");
    return listens ? [{ address, port: Number.parseInt(port, 16) }] : [];
  });
}

function linkTarget(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ""; // closed meanwhile
  }
}

/** Asks for every path on every port and socket, and prints all that it gets. */
const CRAWL = `
const http = require("node:http");
const [ports, sockets, paths] = JSON.parse(process.argv[1]);
const ask = (to, method, path) => new Promise((done) => {
  const sent = http.request({ ...to, method, path, agent: false, timeout: 3000 }, (response) => {
    console.log(method, path, JSON.stringify(to), response.statusCode, JSON.stringify(response.headers));
    response.on("data", (chunk) => process.stdout.write(chunk)).on("close", done);
  });
  sent.on("timeout", () => sent.destroy()).on("error", (error) => (console.log(error.code), done()));
  sent.end();
});
(async () => {
  for (const to of [...ports.map((port) => ({ host: "127.0.0.1", port })), ...sockets.map((socketPath) => ({ socketPath }))])
    await Promise.all(paths.flatMap((path) => ["GET", "POST"].map((method) => ask(to, method, path))));
})();`;

const PATHS = [
  ...["/", "/healthz/ready", "/stats/prometheus", "/metrics", "/debug/ndsz", "/debug/pprof/", "/debug/pprof/heap"],
  ...["/debug/pprof/cmdline", "/debug/pprof/profile?seconds=1", "/debug/pprof/allocs?seconds=1", "/stsStatus"],
  ...["/debug", "/debug/config_dump", "/debug/syncz", "/token", "/envj", "/memj", "/app-health/x/livez", "/json/list"],
  ...["/quitquitquit", "/drain"],
];

async function crawled({ folder, agent }: Running): Promise<string> {
  const sockets = readdirSync(folder, { recursive: true, withFileTypes: true });
  const paths = sockets.filter((entry) => entry.isSocket()).map((entry) => join(entry.parentPath, entry.name));
  const target = JSON.stringify([listeningPorts(agent), paths, PATHS]);
  const stdio: ["ignore", "pipe", "inherit"] = ["ignore", "pipe", "inherit"];
  const child = spawn(process.execPath, ["-e", CRAWL, target], { uid: STRANGER, gid: STRANGER, cwd: "/", stdio });
  const said = text(child.stdout);
  await once(child, "exit");
  return said;
}

const OPTIONS = { skip: process.getuid?.() === 0 ? false : "needs root, to become another account", timeout: 120_000 };

test(
  "Agent host surface: another account finds the workload's token on no endpoint of the agent, and cannot end it",
  OPTIONS,
  async (t) => {
    for (const flags of [[], ["--profiling"]]) {
      const running = await agentWithToken(t, flags);
      chmodSync(running.folder, 0o755);
      const said = await crawled(running);
      assert.match(said, /GET \/healthz\/ready .* (200|503) /);
      assert.match(said, /POST \/quitquitquit .* 403 /);
      assert.match(said, /POST \/drain .* 403 /);
      assert.doesNotMatch(said, new RegExp(TOKEN));
      assert.doesNotMatch(said, /"snapshot":\{/);
      assert.equal(running.agent.child.exitCode, null);
    }
  },
);

test(
  "Agent host surface: only the agent's own account finds the token in a heap snapshot, on the debug socket",
  OPTIONS,
  async (t) => {
    const { folder } = await agentWithToken(t, ["--profiling"]);
    const sent = request({ socketPath: join(folder, DEBUG_SOCKET), path: "/debug/pprof/heap", agent: false }).end();
    const [response] = await once(sent, "response");
    assert.match(await text(response), new RegExp(TOKEN));
  },
);

test(
  "Agent host surface: sockets are private, ports but the status port are on loopback, and no key is in a file",
  OPTIONS,
  async (t) => {
    const { folder, agent } = await agentWithToken(t, ["--profiling"], {});
    await eventually("a certificate", () => agent.text().includes("generated new workload certificate"), 30_000);
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const paths = (kind: "isSocket" | "isFile") =>
      entries.filter((entry) => entry[kind]()).map((entry) => join(entry.parentPath, entry.name));
    const modes = paths("isSocket").map((path) => statSync(path).mode & 0o777);
    assert.deepEqual(modes, [0o600, 0o600, 0o600], "XDS, SDS and debug");
    for (const path of paths("isSocket"))
      assert.equal(statSync(dirname(path)).mode & 0o022, 0, `others cannot write beside ${path}`);
    for (const path of paths("isFile")) assert.doesNotMatch(readFileSync(path, "latin1"), /PRIVATE KEY/, path);
    const open = listeners(agent).filter(({ address }) => address !== "0100007F");
    assert.equal(open.length, 1, JSON.stringify(open));
  },
);
