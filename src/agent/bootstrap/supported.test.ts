import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { type NodeInput, proxyNode } from "../node.ts";
import { envoyBootstrap } from "./bootstrap.ts";
import { supportedBootstrap } from "./supported.ts";
import { writeBootstrap } from "./write.ts";

const ENVOY = process.env.ENVOY ?? join(import.meta.dirname, "../../../.cache/envoy");
const whereEnvoy = { skip: existsSync(ENVOY) ? false : `no Envoy at ${ENVOY}` };

const DISCOVERY = { name: "metadata_discovery" };
const INTERNAL = { name: "envoy.bootstrap.internal_listener" };
const missing = (name: string) => async () =>
  `error: Didn't find a registered implementation for '${name}' with type URL: 'x'`;

test("supportedBootstrap() does not ask about what every build has", async () => {
  const bootstrap = { bootstrap_extensions: [INTERNAL], tracing: { http: { name: "envoy.tracers.zipkin" } } };
  const result = await supportedBootstrap(bootstrap, () => assert.fail("asked"));
  assert.deepEqual(result, { bootstrap, removed: [], known: {} });
});

test("supportedBootstrap() removes what Envoy says it lacks, one after the other", async () => {
  const bootstrap = {
    bootstrap_extensions: [DISCOVERY, INTERNAL],
    tracing: { http: { name: "envoy.tracers.lightstep" } },
    x: 1,
  };
  const answers = [missing("metadata_discovery"), missing("envoy.tracers.lightstep")];
  const result = await supportedBootstrap(bootstrap, async () => (await answers.shift()?.()) ?? "");
  assert.deepEqual(result, {
    bootstrap: { bootstrap_extensions: [INTERNAL], x: 1 },
    removed: ["metadata_discovery", "envoy.tracers.lightstep"],
    known: { metadata_discovery: false, "envoy.tracers.lightstep": false },
  });
});

test("supportedBootstrap() does not ask about what is known", async () => {
  const bootstrap = { bootstrap_extensions: [DISCOVERY], tracing: { http: { name: "envoy.tracers.lightstep" } } };
  const known = { metadata_discovery: false, "envoy.tracers.lightstep": true };
  const result = await supportedBootstrap(bootstrap, () => assert.fail("asked"), known);
  assert.deepEqual(result, { bootstrap: { tracing: bootstrap.tracing }, removed: ["metadata_discovery"], known });
});

test("supportedBootstrap() leaves everything when Envoy accepts it or complains of something else", async () => {
  const bootstrap = { bootstrap_extensions: [DISCOVERY] };
  for (const answer of ["", "some other error", "Didn't find a registered implementation for 'elsewhere'"]) {
    const known = answer === "" ? { metadata_discovery: true } : {};
    assert.deepEqual(await supportedBootstrap(bootstrap, async () => answer), { bootstrap, removed: [], known });
  }
});

test("writeBootstrap() writes a file that the Envoy at hand accepts", whereEnvoy, async (t) => {
  const configPath = join(mkdtempSync(join(tmpdir(), "bootstrap-")), "proxy");
  t.after(() => rmSync(join(configPath, ".."), { recursive: true }));
  const tracing = { lightstep: { address: "collector:8080", accessToken: "secret" } };
  const input: NodeInput = {
    id: "sidecar~10.0.0.1~a.b~b.svc.cluster.local",
    addresses: ["10.0.0.1"],
    env: { ISTIO_META_ENABLE_HBONE: "true" },
    proxyConfig: { ...DEFAULT_PROXY_CONFIG, configPath, tracing },
    pilotSubjectAltNames: [],
    envoyStatusPort: 15021,
    envoyPrometheusPort: 15090,
    exitOnZeroActiveConnections: true,
    skipDeprecatedLogs: true,
    workloadIdentitySocketFile: "socket",
    outlierLogPath: "/dev/stdout",
    stsPort: 0,
    version: "1.29.6",
  };
  const { bootstrap } = envoyBootstrap({
    ...input,
    node: proxyNode(input),
    logAsJson: true,
    dualStack: false,
    statusPortProxyProtocol: true,
    hostIp: "",
    fips: true,
    stripFragment: false,
    deltaXds: true,
    xdsRootCert: "",
  });
  const { path, removed, bootstrap: written } = await writeBootstrap(bootstrap, { configPath, binaryPath: ENVOY });
  assert.deepEqual(removed, ["metadata_discovery", "envoy.tracers.lightstep"]);
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), written);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(configPath).mode & 0o777, 0o700);
});

test("writeBootstrap() names the file that cannot be written, and leaves nothing half-written", async (t) => {
  const configPath = mkdtempSync(join(tmpdir(), "unwritable-"));
  t.after(() => rmSync(configPath, { recursive: true }));
  // A folder in its place: no user, not even root, can write that file.
  mkdirSync(join(configPath, "envoy-rev.json/x"), { recursive: true });
  await assert.rejects(
    writeBootstrap({}, { configPath, binaryPath: "/nowhere" }),
    (error: Error) => error instanceof MeshError && /^Cannot write .*\/envoy-rev\.json: EISDIR/.test(errorText(error)),
  );
  assert.deepEqual(readdirSync(configPath), ["envoy-rev.json"]);
});

test("writeBootstrap() asks an Envoy once, as long as it is the same one", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "extensions-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [binaryPath, asked] = [join(folder, "envoy"), join(folder, "asked")];
  const program = (more: string) =>
    writeFileSync(binaryPath, `#!/bin/sh\necho x >> ${asked}\n${more}\n`, { mode: 0o755 });
  const questions = () => (existsSync(asked) ? readFileSync(asked, "utf8").length / 2 : 0);
  const write = () => writeBootstrap({ bootstrap_extensions: [DISCOVERY] }, { configPath: folder, binaryPath });
  program(
    `grep -q metadata_discovery "$4" || exit 0; echo "Didn't find a registered implementation for 'metadata_discovery'" >&2; exit 1`,
  );
  assert.deepEqual((await write()).removed, ["metadata_discovery"]);
  assert.equal(questions(), 1);
  assert.deepEqual((await write()).removed, ["metadata_discovery"]);
  assert.equal(questions(), 1);
  program("exit 0");
  assert.deepEqual((await write()).removed, []);
  assert.equal(questions(), 2);
  writeFileSync(join(folder, "envoy-extensions.json"), "{");
  assert.deepEqual((await write()).removed, []);
  assert.equal(questions(), 3);
});
