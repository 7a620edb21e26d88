/** Envoys that replace one another under load: the whole agent, with real Envoys. */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouterSchema } from "#gen/envoy/extensions/filters/http/router/v3/router_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import { parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/messages/delta-response.ts";
import { LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import {
  type AgentProcess,
  agentEnvironment,
  agentPorts,
  agentReady,
  ENVOY,
  spawnAgent,
  WHERE_ENVOY,
  writePodFiles,
} from "../../test/support/agent-process.ts";
import {
  eventually,
  type Stream,
  startFakeControlPlane,
  temporaryFolder,
} from "../../test/support/fake-control-plane.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { fetchText } from "./http-client.ts";

/** A listener that answers by itself. */
function answeringListener(port: number): Uint8Array {
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix: "load",
    routeSpecifier: {
      case: "routeConfig",
      value: {
        virtualHosts: [
          {
            name: "all",
            domains: ["*"],
            routes: [
              {
                match: { pathSpecifier: { case: "prefix", value: "/" } },
                action: { case: "directResponse", value: { status: 200 } },
              },
            ],
          },
        ],
      },
    },
    httpFilters: [
      {
        name: "envoy.filters.http.router",
        configType: { case: "typedConfig", value: anyPack(RouterSchema, create(RouterSchema)) },
      },
    ],
  });
  return toBinary(
    ListenerSchema,
    create(ListenerSchema, {
      name: "load",
      address: {
        address: {
          case: "socketAddress",
          value: { address: "127.0.0.1", portSpecifier: { case: "portValue", value: port } },
        },
      },
      filterChains: [
        {
          filters: [
            {
              name: "envoy.filters.network.http_connection_manager",
              configType: { case: "typedConfig", value: anyPack(HttpConnectionManagerSchema, manager) },
            },
          ],
        },
      ],
    }),
  );
}

/** A control plane that gives one listener, to those it wants to serve. */
async function planeWithListener(t: { after(fn: () => void): void }, port: number) {
  const state = { silent: false };
  const onStream = (stream: Stream) => {
    stream.on("error", () => undefined);
    stream.on("data", (bytes: Buffer) => {
      const { typeUrl, nonce } = parseDeltaRequest(bytes);
      if (nonce !== "" || state.silent) return;
      const value = answeringListener(port);
      const resources =
        typeUrl === LISTENER_TYPE ? [resourceFrame(typeUrl, { name: "load", version: "1", value })] : [];
      stream.write(
        formatDeltaResponse({ typeUrl, nonce: typeUrl, systemVersion: "1", resources, removed: [], controlPlane: "" }),
      );
    });
  };
  const plane = await startFakeControlPlane({ onStream });
  t.after(() => plane.close());
  return { plane, state };
}

/** Requests without a pause, over connections that are kept and over new ones; counts those that fail. */
function load(t: { after(fn: () => Promise<void>): void }, port: number) {
  const counts = { done: 0, failed: [] as string[] };
  let running = true;
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  const once = (agent: Agent | false) =>
    new Promise<void>((resolve) => {
      const outgoing = request({ host: "127.0.0.1", port, path: "/", agent }, (response) => {
        if (response.statusCode === 200) counts.done++;
        else counts.failed.push(`status ${response.statusCode}`);
        response.resume().on("close", resolve);
      });
      outgoing.on("error", (error) => {
        counts.failed.push(error.message);
        resolve();
      });
      outgoing.end();
    });
  const client = async (agent: Agent | false) => {
    while (running) await once(agent);
  };
  const clients = [client(kept), client(false), client(false)];
  const end = async () => {
    running = false;
    await Promise.all(clients);
    kept.destroy();
  };
  t.after(end);
  return { counts, end };
}

/** A request whose head is sent but for its end. */
async function slowRequest(t: { after(fn: () => void): void }, port: number) {
  const socket = connect(port, "127.0.0.1");
  t.after(() => void socket.destroy());
  await once(socket, "connect");
  socket.write("GET / HTTP/1.1\r\nHost: slow\r\n");
  const finish = async () => {
    socket.write("\r\n");
    const [answer] = await once(socket, "data");
    return String(answer);
  };
  return { finish };
}

function envoyOfEpoch({ pid }: ChildProcess, epoch: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  const wanted = `--restart-epoch\0${epoch}\0`;
  const found = children.find((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes(wanted));
  if (found === undefined) throw new Error(`no Envoy of epoch ${epoch}`);
  return found;
}

async function startHotAgent(t: { after(fn: () => void | Promise<void>): void }, binaryPath: string) {
  let agent: AgentProcess | undefined;
  // Before its folder is removed: it cleans up by what is in there.
  t.after(() => agent?.end());
  const folder = temporaryFolder(t);
  const [port = 0] = await freePorts(1);
  const { plane, state } = await planeWithListener(t, port);
  writePodFiles(folder, plane.rootPem);
  const ports = await agentPorts();
  const proxyConfig = {
    discoveryAddress: plane.address,
    binaryPath,
    drainDuration: "1s",
    terminationDrainDuration: "0.100s",
  };
  const env = agentEnvironment(ports, {
    proxyConfig: JSON.stringify(proxyConfig),
    ENVOY_HOT_RESTART: "true",
    ISTIO_BOOTSTRAP_OVERRIDE: "./etc/istio/config/override.yaml",
  });
  agent = spawnAgent(["proxy", "sidecar"], { cwd: folder, env });
  await agentReady(ports, agent.text);
  const epoch = async () => {
    const target = { host: "127.0.0.1", port: ports.admin, path: "/server_info", timeoutMs: 5_000 };
    const info = await fetchText(target).catch(() => undefined);
    return info === undefined ? undefined : JSON.parse(info.body).command_line_options.restart_epoch;
  };
  return { ...agent, folder, port, state, epoch, ports };
}

test("SIGHUP and a new program replace Envoy under load, and no request fails", WHERE_ENVOY, async (t) => {
  const programs = temporaryFolder(t);
  const binaryPath = join(programs, "envoy");
  copyFileSync(ENVOY, binaryPath);
  const { child, text, port, epoch, folder } = await startHotAgent(t, binaryPath);
  assert.match(
    text(),
    /Envoy command: \[-c etc\/istio\/proxy\/envoy-rev0\.json .*--restart-epoch 0 --use-dynamic-base-id --base-id-path etc\/istio\/proxy\/base-id --parent-shutdown-time-s 16 /,
  );
  const { counts, end } = load(t, port);
  await eventually("load", () => counts.done > 100);
  const slow = await slowRequest(t, port);
  child.kill("SIGHUP");
  await eventually("epoch 1", () => text().includes("Epoch 1 serves; epoch 0 drains"));
  const bootstrap = (epoch: number) => readFileSync(join(folder, `etc/istio/proxy/envoy-rev${epoch}.json`), "utf8");
  assert.equal(bootstrap(1), bootstrap(0));
  copyFileSync(ENVOY, `${binaryPath}.new`);
  renameSync(`${binaryPath}.new`, binaryPath);
  // A third Envoy would end the first at once, and with it the request that it has begun.
  await eventually("a wait", () => text().includes("Envoy is replaced when epoch 0 has drained"));
  assert.match(await slow.finish(), /^HTTP\/1\.1 200 OK/);
  await eventually("epoch 2", () => text().includes("Epoch 2 serves; epoch 1 drains"));
  await eventually("epoch 0 to end", () => text().includes("Epoch 0 ended with status 0"));
  const { done } = counts;
  await eventually("more requests", () => counts.done > done + 100);
  await end();
  assert.deepEqual(counts.failed, []);
  assert.equal(await epoch(), 2);
  assert.ok(readdirSync(join(folder, "etc/istio/proxy")).includes("envoy-rev2.json"));
  const baseId = /--base-id (\d+)/.exec(text())?.[1];
  child.kill("SIGTERM");
  await eventually("the end", () => child.exitCode === 0);
  assert.equal(existsSync(`/dev/shm/envoy_shared_memory_${baseId}0`), false);
  assert.deepEqual(
    readdirSync(join(folder, "etc/istio/proxy")).filter((name) => /envoy|base/.test(name)),
    [],
  );
});

test("an Envoy that does not become ready is taken back, and the old one serves on", WHERE_ENVOY, async (t) => {
  const { child, text, port, epoch, state } = await startHotAgent(t, ENVOY);
  const { counts, end } = load(t, port);
  state.silent = true;
  child.kill("SIGHUP");
  await eventually("epoch 1", async () => (await epoch()) === 1);
  process.kill(envoyOfEpoch(child, 1), "SIGKILL");
  await eventually("the report", () => text().includes("the old one goes on serving"));
  const { done } = counts;
  await eventually("more requests", () => counts.done > done + 100);
  state.silent = false;
  child.kill("SIGHUP");
  await eventually("recovery", () => text().includes("Epoch 1 serves; epoch 0 drains"));
  await end();
  assert.deepEqual(counts.failed, []);
  assert.equal(await epoch(), 1);
});

test("what Envoy refuses, and what the agent cannot follow, is never started", WHERE_ENVOY, async (t) => {
  const { text, folder, epoch } = await startHotAgent(t, ENVOY);
  const write = (name: string, yaml: string) => writeFileSync(join(folder, "etc/istio/config", name), yaml);
  write("mesh", 'defaultConfig: {runtimeValues: {"a.b": "x"}}\n');
  await eventually("a new epoch", () => text().includes("Epoch 1 serves"));
  write("override.yaml", 'static_resources: {clusters: [{name: ""}]}\n');
  await eventually("Envoy's refusal", () => text().includes("Envoy is not replaced: it refuses the"));
  write("mesh", "defaultConfig: {configPath: ./elsewhere}\n");
  await eventually("ours", () => text().includes("Envoy is not replaced: ProxyConfig.configPath changed"));
  assert.equal(await epoch(), 1);
});
