/** Starts that cannot succeed and what they say, and one without Envoy. */
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { ENVOY, WHERE_ENVOY } from "../../test/support/agent-process.ts";
import { selfSigned } from "../../test/support/certificates.ts";
import {
  eventually,
  type Stream,
  startFakeControlPlane,
  temporaryFolder,
} from "../../test/support/fake-control-plane.ts";
import { freePorts } from "../../test/support/free-ports.ts";
import { UnreadCall } from "../../test/support/unread-call.ts";
import { runAgent } from "./agent.ts";
import { parseAgentConfig } from "./agent-config.ts";
import { HERE } from "./place.ts";
import { type ProxyFlags, prepare } from "./prepare.ts";
import { startTokenServer } from "./sts/token-server-fixture.ts";

const FLAGS: ProxyFlags = {
  type: "sidecar",
  domain: "",
  meshConfig: "./etc/istio/config/mesh",
  stsPort: 0,
  tokenManagerPlugin: "",
  serviceCluster: "istio-proxy",
  proxyLogLevel: "warning",
  proxyComponentLogLevel: "",
  concurrency: 0,
  templateFile: "",
  outlierLogPath: "",
  profiling: false,
  logAsJson: false,
};

interface Pod {
  readonly env?: Readonly<Record<string, string>>;
  readonly flags?: Partial<ProxyFlags>;
  readonly proxyConfig?: Readonly<Record<string, unknown>>;
  /** Text by path; undefined makes a folder, which cannot be read as a file. */
  readonly files?: Readonly<Record<string, string | Buffer | undefined>>;
}

const ROOTS = { "var/run/secrets/istio/root-cert.pem": selfSigned("root").certificate };

/** A pod's folder, and what its agent is started with. */
async function podOf(t: TestContext, { env = {}, flags = {}, proxyConfig = {}, files = ROOTS }: Pod) {
  const folder = temporaryFolder(t);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, text === undefined ? path : join(path, "..")), { recursive: true });
    if (text !== undefined) writeFileSync(join(folder, path), text);
  }
  const [statusPort, proxyAdminPort] = await freePorts(2);
  const variables = {
    INSTANCE_IP: "127.0.0.1",
    CLOUD_PLATFORM: "none",
    PROXY_XDS_DEBUG_VIA_AGENT: "false",
    PROXY_CONFIG: JSON.stringify({ statusPort, proxyAdminPort, binaryPath: idleEnvoy(folder), ...proxyConfig }),
    ...env,
  };
  const { config, problems } = parseAgentConfig(variables);
  assert.deepEqual(problems, []);
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const input = { flags: { ...FLAGS, ...flags }, config, env: variables, log, place: { ...HERE, folder } };
  return { folder, lines, input };
}

const OWN_ADDRESSES = Object.values(networkInterfaces()).flatMap((infos = []) => infos.map(({ address }) => address));
const WHERE_IPV6 = { skip: OWN_ADDRESSES.includes("::1") ? false : "no ::1" };
const ADS_PATH = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

/** A program that stays until it is killed. */
function idleEnvoy(folder: string): string {
  const path = join(folder, "idle-envoy");
  writeFileSync(path, "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
  return path;
}

async function failureOf(t: TestContext, pod: Pod): Promise<string> {
  return (await failedStart(t, pod)).failure;
}

async function failedStart(t: TestContext, pod: Pod): Promise<{ failure: string; envoyStarted: boolean }> {
  const { failure, lines } = await startOf(t, pod);
  return { failure, envoyStarted: lines.some((line) => line.includes("Envoy command: ")) };
}

async function startOf(t: TestContext, pod: Pod): Promise<{ failure: string; lines: readonly string[] }> {
  const { input, lines } = await podOf(t, pod);
  const signal = new AbortController().signal;
  try {
    await runAgent({ ...input, stop: signal, hurry: signal, reload: new EventTarget(), startedAt: 0 });
    return { failure: "", lines };
  } catch (thrown) {
    return { failure: errorText(thrown), lines };
  }
}

test("runAgent() names the step of the start that failed, in the words of Istio's agent", async (t) => {
  const cases: readonly (readonly [Pod, RegExp])[] = [
    [
      { files: {} },
      /^failed to start SDS server: failed to start workload secret manager: root CA file for CA does not exist /,
    ],
    [
      { env: { CA_ROOT_CA: "SYSTEM" }, files: {} },
      /^failed to find root XDS CA: root CA file for XDS does not exist .*root-cert\.pem$/,
    ],
    [
      { env: { ISTIO_META_DNS_CAPTURE: "true", DNS_PROXY_ADDR: "192.0.2.1:53530" } },
      /^failed to start local DNS server: .*EADDRNOTAVAIL/,
    ],
    [{ env: { ISTIO_META_POD_PORTS: "80" } }, /^failed to generate bootstrap metadata: ISTIO_META_POD_PORTS must be /],
    [
      { files: { ...ROOTS, "etc/istio/proxy": "a file, so no socket can be in it" } },
      /^failed to start xds proxy: .*(ENOTDIR|EEXIST)/,
    ],
    [
      { env: { GRPC_XDS_BOOTSTRAP: "/dev/null/x" } },
      /^failed generating gRPC XDS bootstrap: Cannot write \/dev\/null\/x/,
    ],
    [
      { flags: { templateFile: "t.json" }, files: { ...ROOTS, "t.json": '{"a":\n{{ end }}}' } },
      /^failed to initialize envoy agent: failed to generate bootstrap config: .*t\.json:2: /,
    ],
    [
      { proxyConfig: { tracing: { stackdriver: {} } } },
      /^failed to initialize envoy agent: failed to generate bootstrap config: unable to process Stackdriver tracer: /,
    ],
    [
      { proxyConfig: { binaryPath: "/nowhere/envoy" } },
      /^failed to initialize envoy agent: Cannot start Envoy: \/nowhere\/envoy does not exist/,
    ],
    [
      { files: { "etc/istio/config/mesh": undefined } },
      /^failed to read mesh config file \.\/etc\/istio\/config\/mesh: /,
    ],
    [
      { files: { "etc/istio/config/mesh": Buffer.from("defaultConfig:\n  binaryPath: \xff", "latin1") } },
      /^failed to read mesh config file \.\/etc\/istio\/config\/mesh: Cannot read .*\/mesh: line 2 is not UTF-8$/,
    ],
  ];
  for (const [pod, expected] of cases) assert.match(await failureOf(t, pod), expected);
});

test("runAgent() does not start Envoy when nobody could give tokens or certificates", async (t) => {
  const failures: readonly (readonly [Readonly<Record<string, string>>, string])[] = [
    [
      { CREDENTIAL_FETCHER_TYPE: "Other" },
      "failed to create credential fetcher: invalid credential fetcher type Other: choose JWT or GoogleComputeEngine",
    ],
    [
      { CA_PROVIDER: "Other" },
      'failed to start SDS server: failed to start workload secret manager: CA provider "Other" not registered: choose Citadel, GoogleCA, GoogleCAS or GkeWorkloadCertificate',
    ],
  ];
  for (const [env, failure] of failures)
    assert.deepEqual(await failedStart(t, { env }), { failure, envoyStarted: false });
});

test("runAgent() does not start Envoy with a root certificate that is none", async (t) => {
  const path = "var/run/secrets/istio/root-cert.pem";
  const starts: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [
      {},
      /^failed to start SDS server: failed to start workload secret manager: root CA file for CA .*root-cert\.pem holds no certificate in PEM form$/,
    ],
    [
      { CA_ROOT_CA: "SYSTEM" },
      /^failed to find root XDS CA: root CA file for XDS .*root-cert\.pem holds no certificate in PEM form$/,
    ],
  ];
  for (const [env, expected] of starts) {
    const { failure, envoyStarted } = await failedStart(t, { env, files: { [path]: "none" } });
    assert.match(failure, expected);
    assert.equal(envoyStarted, false);
  }
});

test("runAgent() does not start Envoy when the token service cannot be had", async (t) => {
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  t.after(() => taken.close());
  const { port } = taken.address() as AddressInfo;
  assert.deepEqual(await failedStart(t, { flags: { stsPort: port } }), {
    failure: `Cannot listen on 127.0.0.1 port ${port} (--stsPort): listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
    envoyStarted: false,
  });
  const [stsPort = 0] = await freePorts(1);
  assert.deepEqual(await failedStart(t, { flags: { stsPort, tokenManagerPlugin: "Other" } }), {
    failure: '--tokenManagerPlugin: there is no plugin "Other": choose GoogleTokenExchange',
    envoyStarted: false,
  });
});

test("runAgent() does not start Envoy when DNS cannot be served where it should", async (t) => {
  const taken = createSocket("udp4").bind(0, "127.0.0.1");
  await once(taken, "listening");
  t.after(() => taken.close());
  const { port } = taken.address();
  const failures: readonly (readonly [string, string])[] = [
    [`127.0.0.1:${port}`, `Cannot serve DNS on udp 127.0.0.1:${port}: bind EADDRINUSE 127.0.0.1:${port}`],
    ["15053", 'DNS_PROXY_ADDR must be host:port, not "15053"'],
  ];
  for (const [address, reason] of failures)
    assert.deepEqual(await failedStart(t, { env: { ISTIO_META_DNS_CAPTURE: "true", DNS_PROXY_ADDR: address } }), {
      failure: `failed to start local DNS server: ${reason}`,
      envoyStarted: false,
    });
});

test("runAgent() goes on without an override that cannot be read, and names its file", async (t) => {
  const reasons: readonly (readonly [string | Buffer | undefined, RegExp])[] = [
    [undefined, /: EISDIR: /],
    [Buffer.from("node:\n  id: \xff", "latin1"), /: line 2 is not UTF-8\n/],
    ["node: [", / line \d is not YAML: /],
  ];
  for (const [override, reason] of reasons) {
    const { lines } = await startOf(t, {
      env: { ISTIO_BOOTSTRAP_OVERRIDE: "./override.yaml" },
      files: { ...ROOTS, "override.yaml": override },
      proxyConfig: { binaryPath: "/nowhere/envoy" },
    });
    const [warning = ""] = lines.filter((line) => line.includes("\tFailed to read bootstrap override: "));
    assert.match(warning, /ISTIO_BOOTSTRAP_OVERRIDE \S*\/override\.yaml/);
    assert.match(warning, reason);
  }
});

test("runAgent() says what Envoy has against a bootstrap that a template gave", WHERE_ENVOY, async (t) => {
  const flags = { templateFile: "t.json" };
  const proxyConfig = { binaryPath: ENVOY };
  const broken = { ...ROOTS, "t.json": '{"node": {"id": "{{ .nodeID }}"' };
  assert.match(
    await failureOf(t, { flags, proxyConfig, files: broken }),
    /failed to generate bootstrap config: Envoy refuses .*envoy-rev\.json, which t\.json gave: Unable to parse JSON/,
  );
  const wrong = { ...ROOTS, "t.json": '{"static_resources": {"clusters": [{"name": ""}]}}' };
  assert.match(await failureOf(t, { flags, proxyConfig, files: wrong }), /which t\.json gave: .*name/i);
});

test("prepare() shows the configuration as YAML, and goes on without files of the pod and without statsd", async (t) => {
  const { input, lines } = await podOf(t, {
    files: { "etc/istio/pod/annotations": undefined, "etc/istio/pod/labels": 'app="web' },
    proxyConfig: { statsdUdpAddress: "name.invalid:9125", drainDuration: "9s" },
  });
  const { proxyConfig } = await prepare(input);
  assert.equal(proxyConfig.statsdUdpAddress, undefined);
  const text = lines.join("");
  assert.match(text, /\tEffective config: binaryPath: \/.*\/idle-envoy\n[\s\S]*\ndrainDuration: 9s\n/);
  assert.doesNotMatch(text, /^statsdUdpAddress: /m);
  assert.match(text, /\twarn\tfailed to read pod annotations or labels: Cannot read .*annotations/);
  assert.match(text, /\twarn\t.*labels is ignored: /);
  assert.match(text, /\twarn\tresolve StatsdUdpAddress failed: /);
});

test("prepare() goes on without a statsd address that is none", async (t) => {
  for (const statsdUdpAddress of ["x:y", "x", ":8125", "10.0.0.1:99999", ""]) {
    const { input, lines } = await podOf(t, { proxyConfig: { statsdUdpAddress } });
    assert.equal((await prepare(input)).proxyConfig.statsdUdpAddress, undefined);
    assert.equal(/resolve StatsdUdpAddress failed: must be host:port/.test(lines.join("")), statsdUdpAddress !== "");
  }
});

test("prepare() sends statistics to an address of IPv4 where a name has one", async (t) => {
  const { input, lines } = await podOf(t, { proxyConfig: { statsdUdpAddress: "localhost:8125" } });
  assert.equal((await prepare(input)).proxyConfig.statsdUdpAddress, "127.0.0.1:8125");
  assert.match(lines.join(""), /^statsdUdpAddress: "?127\.0\.0\.1:8125"?$/m);
});

test("prepare() warns of levels of Envoy's log that are none", async (t) => {
  const { input, lines } = await podOf(t, { flags: { proxyLogLevel: "info,misc:error,a:b:c,http:" } });
  await prepare(input);
  const warned = lines.join("").match(/(?<=\twarn\t--proxyLogLevel: ).*/g);
  assert.deepEqual(warned, [
    '"a:b:c" is not of the form component:level, it is ignored',
    '"http:" is not of the form component:level, it is ignored',
  ]);
});

test("prepare() makes --templateFile part of the configuration, unless that brings a bootstrap of its own", async (t) => {
  const flags = { templateFile: "t.json" };
  const { input } = await podOf(t, { flags, proxyConfig: { proxyBootstrapTemplatePath: "other.json" } });
  const { proxyConfig, node } = await prepare(input);
  assert.equal(proxyConfig.proxyBootstrapTemplatePath, "t.json");
  assert.match(JSON.stringify(node.metadata.PROXY_CONFIG), /"proxyBootstrapTemplatePath":"t\.json"/);
  const custom = await podOf(t, { flags, proxyConfig: { customConfigFile: "own.json" } });
  assert.equal((await prepare(custom.input)).proxyConfig.proxyBootstrapTemplatePath, undefined);
});

test("runAgent() without Envoy lets applications of any user read their bootstrap and connect", async (t) => {
  const { folder, input } = await podOf(t, { env: { DISABLE_ENVOY: "true" } });
  const stop = new AbortController();
  const { signal } = stop;
  const ended = runAgent({ ...input, stop: signal, hurry: signal, reload: new EventTarget(), startedAt: 0 });
  const modeOf = (name: string) => statSync(join(folder, "etc/istio/proxy", name)).mode & 0o777;
  await eventually("a bootstrap", () => existsSync(join(folder, "etc/istio/proxy/grpc-bootstrap.json")));
  assert.deepEqual([modeOf("grpc-bootstrap.json"), modeOf("XDS")], [0o644, 0o666]);
  stop.abort();
  assert.equal(await ended, 0);
});

test("runAgent() without Envoy goes by the readiness of the application alone", async (t) => {
  const { input, lines } = await podOf(t, {
    env: { DISABLE_ENVOY: "true" },
    proxyConfig: { readinessProbe: { exec: { command: ["true"] } } },
  });
  const stop = new AbortController();
  const { signal } = stop;
  t.after(() => stop.abort());
  const ended = runAgent({ ...input, stop: signal, hurry: signal, reload: new EventTarget(), startedAt: 0 });
  await eventually("a state", () => lines.join("").includes("marking as"), 10_000);
  assert.match(lines.join(""), /success threshold hit, marking as healthy/);
  stop.abort();
  await ended;
});

test(
  "runAgent() asks Envoy where it listens: with both families on that of the first address",
  WHERE_IPV6,
  async (t) => {
    const asked: string[] = [];
    const admin = createHttpServer(({ url = "" }, response) => {
      asked.push(url);
      response.end();
    }).listen(0, "::1");
    await once(admin, "listening");
    t.after(() => admin.close());
    const { input } = await podOf(t, {
      env: { INSTANCE_IP: "fd00::7", ISTIO_DUAL_STACK: "true" },
      proxyConfig: { proxyAdminPort: (admin.address() as AddressInfo).port },
    });
    const stop = new AbortController();
    const { signal } = stop;
    t.after(() => stop.abort());
    const ended = runAgent({ ...input, stop: signal, hurry: signal, reload: new EventTarget(), startedAt: 0 });
    await eventually("a question of the agent", () => asked.length > 0, 10_000);
    assert.match(String(asked[0]), /^\/stats\?/);
    stop.abort();
    await ended;
  },
);

test("runAgent() shows the control plane the token of the credential fetcher from the first stream on", async (t) => {
  const tokens: unknown[] = [];
  const onStream = (stream: Stream) => {
    tokens.push(stream.metadata.get("authorization")[0]);
    stream.on("error", () => undefined);
  };
  const plane = await startFakeControlPlane({ onStream });
  t.after(() => plane.close());
  const metadata = await startTokenServer(t, () => ({ body: "machine-token" }));
  const { folder, input } = await podOf(t, {
    env: {
      DISABLE_ENVOY: "true",
      CREDENTIAL_FETCHER_TYPE: "GoogleComputeEngine",
      GCE_METADATA_HOST: metadata.host,
      FILE_MOUNTED_CERTS: "true",
    },
    proxyConfig: {
      discoveryAddress: plane.address,
      proxyMetadata: { ISTIO_META_TLS_CLIENT_ROOT_CERT: "root.pem" },
    },
    files: { "root.pem": plane.rootPem, "var/run/secrets/tokens": undefined },
  });
  const stop = new AbortController();
  const { signal } = stop;
  t.after(() => stop.abort());
  const ended = runAgent({ ...input, stop: signal, hurry: signal, reload: new EventTarget(), startedAt: 0 });
  const socket = join(folder, "etc/istio/proxy/XDS");
  await eventually("the socket", () => existsSync(socket));
  using _application = new UnreadCall(`unix:${socket}`, ADS_PATH, Buffer.alloc(0));
  await eventually("a stream", () => tokens.length > 0);
  assert.deepEqual(tokens, ["Bearer machine-token"]);
  stop.abort();
  assert.equal(await ended, 0);
});
