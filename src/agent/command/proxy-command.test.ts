/** The whole agent as a process, with a real Envoy and a control plane that tests control. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { parseDeltaRequest } from "#protocol/messages/delta-request.ts";
import { formatDeltaResponse, resourceFrame } from "#protocol/messages/delta-response.ts";
import { NAME_TABLE_TYPE } from "#protocol/messages/type-urls.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { expositionProblems } from "../../../test/support/exposition.ts";
import {
  eventually,
  type FakeControlPlane,
  type Stream,
  startFakeControlPlane,
  temporaryFolder,
} from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { fetchText } from "../http-client.ts";

const ENVOY = process.env.ENVOY ?? join(import.meta.dirname, "../../../.cache/envoy");
const PROGRAM = join(import.meta.dirname, "../../bin/pilot-agent.ts");
const whereEnvoy = { skip: existsSync(ENVOY) ? false : `no Envoy at ${ENVOY}`, timeout: 180_000 };
const NAMES = toBinary(
  NameTableSchema,
  create(NameTableSchema, { table: { "a.example": { ips: ["10.0.0.1"], registry: "External" } } }),
);

type Context = { after(fn: () => void | Promise<void>): void };

/** Answers each first request of a type: with the name table, else with nothing, which is a configuration too. */
function answer(stream: Stream): void {
  stream.on("error", () => undefined);
  stream.on("data", (bytes: Buffer) => {
    const { typeUrl, nonce } = parseDeltaRequest(bytes);
    if (nonce !== "") return;
    const resources =
      typeUrl === NAME_TABLE_TYPE ? [resourceFrame(typeUrl, { name: "names", version: "1", value: NAMES })] : [];
    stream.write(
      formatDeltaResponse({
        typeUrl,
        nonce: `${typeUrl}-1`,
        systemVersion: "1",
        resources,
        removed: [],
        controlPlane: "",
      }),
    );
  });
}

interface AgentOptions {
  readonly plane?: FakeControlPlane;
  readonly type?: "sidecar" | "router";
  readonly proxyConfig?: object;
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
}

async function startAgent(
  t: Context,
  { plane, type = "sidecar", proxyConfig = {}, env = {}, args = [] }: AgentOptions,
) {
  const folder = temporaryFolder(t);
  for (const sub of ["var/run/secrets/tokens", "var/run/secrets/istio", "etc/istio/pod"])
    mkdirSync(join(folder, sub), { recursive: true });
  writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), "token");
  writeFileSync(join(folder, "var/run/secrets/istio/root-cert.pem"), plane?.rootPem ?? selfSigned("root").certificate);
  writeFileSync(join(folder, "etc/istio/pod/labels"), 'app="httpbin"\n');
  const [statusPort = 0, proxyAdminPort = 0, envoyStatus = 0, envoyPrometheus = 0, dns = 0] = await freePorts(5);
  const config = {
    binaryPath: ENVOY,
    discoveryAddress: plane?.address ?? "localhost:1",
    concurrency: 1,
    statusPort,
    proxyAdminPort,
    ...proxyConfig,
  };
  const child = spawn(process.execPath, [PROGRAM, "proxy", type, ...args], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      POD_NAME: "httpbin-1",
      POD_NAMESPACE: "default",
      INSTANCE_IP: "127.0.0.1",
      CLOUD_PLATFORM: "none",
      PROXY_CONFIG: JSON.stringify(config),
      ENVOY_STATUS_PORT: String(envoyStatus),
      ENVOY_PROMETHEUS_PORT: String(envoyPrometheus),
      ISTIO_META_CLUSTER_ID: "Kubernetes",
      DNS_PROXY_ADDR: `127.0.0.1:${dns}`,
      ...env,
    },
  });
  const output: string[] = [];
  child.stdout.on("data", (chunk) => output.push(String(chunk)));
  child.stderr.on("data", (chunk) => output.push(String(chunk)));
  t.after(() => endAgent(child));
  const text = () => output.join("");
  const get = (port: number, path: string) => fetchText({ host: "127.0.0.1", port, path, timeoutMs: 5_000 });
  const ready = () =>
    eventually(
      () => `ready; it printed\n${text()}`,
      async () => {
        const answer = await get(envoyStatus, "/healthz/ready").catch(() => undefined);
        return answer?.status === 200;
      },
    );
  return { folder, child, text, get, ready, statusPort, proxyAdminPort, envoyPrometheus };
}

/** Two different signals, so that neither is lost: the second lets the agent end its Envoy at once. */
async function endAgent(child: ChildProcess): Promise<void> {
  child.kill("SIGTERM");
  child.kill("SIGINT");
  await exitOf(child);
}

/** How it ended, once all that it printed is here as well. */
async function exitOf(child: ChildProcess): Promise<readonly [number | null, NodeJS.Signals | null]> {
  const hasEnded = child.exitCode !== null || child.signalCode !== null;
  if (!hasEnded || !child.stdout?.closed || !child.stderr?.closed) await once(child, "close");
  return [child.exitCode, child.signalCode];
}

/** The Envoy that this agent started. */
function envoyPid({ pid }: ChildProcess): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  const [envoy] = children.filter((child) => readFileSync(`/proc/${child}/cmdline`, "utf8").includes("envoy-rev.json"));
  if (envoy === undefined) throw new Error("no Envoy");
  return envoy;
}

test("proxy sidecar starts Envoy, becomes ready, and ends after draining", whereEnvoy, async (t) => {
  const plane = await startFakeControlPlane({ onStream: answer });
  t.after(() => plane.close());
  const { folder, child, ready, get, text, statusPort, proxyAdminPort, envoyPrometheus } = await startAgent(t, {
    plane,
    env: { ISTIO_META_DNS_CAPTURE: "true", SERVICE_ACCOUNT: "httpbin" },
    proxyConfig: { terminationDrainDuration: "0.300s" },
    args: ["--trust-domain=cluster.local", "--log_output_level=default:info"],
  });
  await ready();
  const { body: info } = await get(proxyAdminPort, "/server_info");
  const { node } = JSON.parse(info);
  assert.equal(node.id, "sidecar~127.0.0.1~httpbin-1.default~default.svc.cluster.local");
  assert.deepEqual([node.cluster, node.metadata.LABELS], ["httpbin.default", { app: "httpbin" }]);
  assert.match((await get(statusPort, "/debug/ndsz")).body, /"a\.example"/);
  // Listeners that need no certificate are not kept waiting for it.
  await eventually("a certificate", () => text().includes("generated new workload certificate"));
  const { body: metrics } = await get(statusPort, "/stats/prometheus");
  assert.match(metrics, /istio_agent_cert_expiry_seconds.*[\s\S]*envoy_cluster_manager/);
  assert.deepEqual(expositionProblems(metrics), []);
  assert.match((await get(envoyPrometheus, "/stats/prometheus")).body, /envoy_server_live/);
  assert.equal(plane.signings.length, 1);
  assert.deepEqual(readdirSync(join(folder, "etc/istio/proxy")).sort(), [
    "XDS",
    "envoy-rev.json",
    "grpc-bootstrap.json",
  ]);
  child.kill("SIGTERM");
  assert.deepEqual(await exitOf(child), [0, null]);
  assert.match(
    text(),
    /Agent draining Proxy for termination[\s\S]*Graceful termination period is 300ms[\s\S]*Agent has successfully terminated/,
  );
  assert.equal(existsSync(join(folder, "etc/istio/proxy/envoy-rev.json")), false);
});

test("proxy trusts what the machine trusts where it is told so", whereEnvoy, async (t) => {
  const plane = await startFakeControlPlane({ onStream: answer });
  t.after(() => plane.close());
  const machine = temporaryFolder(t);
  writeFileSync(join(machine, "roots.pem"), plane.rootPem);
  const told = { XDS_ROOT_CA: "SYSTEM", CA_ROOT_CA: "SYSTEM", NODE_OPTIONS: "--use-openssl-ca" };
  const other = await startAgent(t, { plane, env: told });
  await eventually("a refusal", () =>
    /unknown authority, by none of those that this machine trusts/.test(other.text()),
  );
  const agent = await startAgent(t, { plane, env: { ...told, SSL_CERT_FILE: join(machine, "roots.pem") } });
  await agent.ready();
});

test("proxy gives Envoy the environment that it was given itself", whereEnvoy, async (t) => {
  const plane = await startFakeControlPlane({ onStream: answer });
  t.after(() => plane.close());
  const { child, ready } = await startAgent(t, { plane });
  await ready();
  const environmentOf = (pid: number | undefined) => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").sort();
  assert.deepEqual(environmentOf(envoyPid(child)), environmentOf(child.pid));
});

test("proxy is not ready while it ends, and says what it waits for", whereEnvoy, async (t) => {
  const plane = await startFakeControlPlane({ onStream: answer });
  t.after(() => plane.close());
  const drains = [
    [{}, "Envoy drains for 1m0s"],
    [{ EXIT_ON_ZERO_ACTIVE_CONNECTIONS: "true" }, "Envoy drains until nobody is connected to it"],
  ] as const;
  for (const [env, what] of drains) {
    const proxyConfig = { terminationDrainDuration: "60s" };
    const { child, ready, text, get, statusPort } = await startAgent(t, { plane, env, proxyConfig });
    await ready();
    child.kill("SIGTERM");
    await eventually("draining", () => text().includes("Agent draining Proxy for termination"));
    const { status, body } = await get(statusPort, "/healthz/ready");
    assert.deepEqual([status, body], [503, `waiting for the end of the agent: server is terminated: ${what}\n`]);
    assert.match(text(), /warn\tEnvoy proxy is NOT ready: server is terminated: Envoy drains /);
    await endAgent(child);
  }
});

test("proxy router ends at once on a second signal", whereEnvoy, async (t) => {
  const plane = await startFakeControlPlane({ onStream: answer });
  t.after(() => plane.close());
  const { child, ready, text } = await startAgent(t, {
    plane,
    type: "router",
    proxyConfig: { terminationDrainDuration: "60s" },
  });
  await ready();
  const envoy = envoyPid(child);
  child.kill("SIGTERM");
  await eventually("draining", () => text().includes("Graceful termination period is 1m0s"));
  child.kill("SIGTERM");
  assert.deepEqual(await exitOf(child), [0, null]);
  assert.equal(existsSync(`/proc/${envoy}`), false);
});

test("proxy ends with the status of an Envoy that was killed", whereEnvoy, async (t) => {
  const plane = await startFakeControlPlane({ onStream: answer });
  t.after(() => plane.close());
  const { child, ready, text } = await startAgent(t, { plane });
  await ready();
  process.kill(envoyPid(child), "SIGKILL");
  assert.deepEqual(await exitOf(child), [137, null]);
  assert.match(text(), /error\tEnvoy was killed after .*: look at memory use and limits\n/);
});

test("proxy keeps Envoy running while the control plane is away, and connects again", whereEnvoy, async (t) => {
  const first = await startFakeControlPlane({ onStream: answer });
  const args = ["--log_output_level=default:info,xdsproxy:debug"];
  const { child, ready, text } = await startAgent(t, { plane: first, args });
  await ready();
  const envoy = envoyPid(child);
  first.close();
  await eventually("the loss", () => /upstream terminated|stream of localhost|Cannot prepare another/.test(text()));
  await ready();
  let streams = 0;
  const onStream = (stream: Stream) => {
    streams++;
    answer(stream);
  };
  const second = await startFakeControlPlane({ onStream, root: first.root, port: Number(first.address.split(":")[1]) });
  t.after(() => second.close());
  await eventually("a new stream", () => streams > 0);
  assert.equal(envoyPid(child), envoy);
});

test("proxy says in one line that there is no Envoy, and that Envoy ended at once", { timeout: 180_000 }, async (t) => {
  const missing = await startAgent(t, { proxyConfig: { binaryPath: "/nowhere/envoy" } });
  assert.deepEqual(await exitOf(missing.child), [255, null]);
  assert.match(
    missing.text(),
    /^Error: failed to initialize envoy agent: Cannot start Envoy: \/nowhere\/envoy does not exist \(ProxyConfig\.binaryPath names it\): spawn .*ENOENT$/m,
  );
  const failing = await startAgent(t, { proxyConfig: { binaryPath: "/bin/false" } });
  assert.deepEqual(await exitOf(failing.child), [1, null]);
  assert.match(failing.text(), /error\tEnvoy exited with status 1 after /);
});

for (const [what, options, message] of [
  [
    "a configuration that cannot be used",
    { proxyConfig: { drainDuration: "0s" } },
    /^Error: The proxy configuration cannot be used: .*drainDuration must be whole seconds/m,
  ],
  [
    "an environment that cannot be used",
    { env: { ENVOY_STATUS_PORT: "65536" } },
    /^Error: ENVOY_STATUS_PORT: must be a port/m,
  ],
  ["a wrong log level", { args: ["--log_output_level=loud"] }, /^Error: --log_output_level: unknown log level "loud"/m],
  [
    "probes that make no sense",
    { env: { ISTIO_KUBE_APP_PROBERS: "{" } },
    /^Error: failed to decode app prober err = .*, json string = \{$/m,
  ],
  [
    "a scrape of the agent itself",
    { proxyConfig: { statusPort: 15020 }, env: { ISTIO_PROMETHEUS_ANNOTATIONS: '{"port":"15020"}' } },
    /^Error: invalid prometheus scrape configuration: application port is the same as agent port/m,
  ],
  [
    "a log level that is none",
    { args: ["--log_output_level=info,"] },
    /^Error: --log_output_level: unknown log level ""/m,
  ],
  [
    "no level for stacks",
    { args: ["--log_stacktrace_level="] },
    /^Error: --log_stacktrace_level: unknown log level ""/m,
  ],
] as const satisfies readonly (readonly [string, AgentOptions, RegExp])[]) {
  test(`proxy refuses ${what} in one line`, { timeout: 180_000 }, async (t) => {
    const { child, text } = await startAgent(t, options);
    assert.deepEqual(await exitOf(child), [255, null]);
    assert.match(text(), message);
    assert.doesNotMatch(text(), /Envoy command/);
  });
}

test("proxy refuses a type that is none, and goes on without a status port that is taken", whereEnvoy, async (t) => {
  const wrong = await startAgent(t, { args: [], type: "waypoint" as "sidecar" });
  assert.deepEqual(await exitOf(wrong.child), [255, null]);
  assert.match(wrong.text(), /^Error: invalid proxy Type: waypoint: it must be sidecar or router$/m);
  const { createServer } = await import("node:net");
  const holder = createServer().listen(0, "::");
  await once(holder, "listening");
  t.after(() => void holder.close());
  const address = holder.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const taken = await startAgent(t, { proxyConfig: { statusPort: port } });
  const said = () => taken.text().includes(`Error listening on status port: Cannot open status port ${port}: `);
  await eventually("the report", () => said() && taken.text().includes("Envoy command: "));
  assert.equal(taken.child.exitCode, null);
});
