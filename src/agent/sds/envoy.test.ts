/** A real Envoy that gets its certificate from here, as its clients see it. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { SILENT } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import type { Issuer } from "#lib/pki/issue.ts";
import { eventually, signedChain, temporaryFolder, testRoot } from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { agentMetrics } from "../metrics.ts";
import { serveUnix } from "../unix-server.ts";
import { workloadCertificate } from "./certificate.ts";
import { FileSecrets } from "./file-secrets.ts";
import { generateKey, type KeyOptions } from "./key.ts";
import { secretDiscoveryService } from "./service.ts";
import { TrustBundle } from "./trust-bundle.ts";
import { WorkloadIdentity } from "./workload-identity.ts";
import { workloadSecrets } from "./workload-secrets.ts";

type Context = { after(fn: () => void | Promise<void>): void };

const ENVOY = process.env.ENVOY ?? join(import.meta.dirname, "../../../.cache/envoy");
const whereEnvoy = { skip: existsSync(ENVOY) ? false : `no Envoy at ${ENVOY}`, timeout: 180_000 };
const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";
const P256: KeyOptions = { curve: "P-256", rsaBits: 2048, pkcs8: false };

/** What Envoy needs to know: a port that shows `default`, believes `ROOTCA`, and asks for both over the socket. */
function bootstrap(socket: string, port: number, api: "GRPC" | "DELTA_GRPC"): object {
  const sds = (name: string) => ({
    name,
    sds_config: {
      api_config_source: {
        api_type: api,
        transport_api_version: "V3",
        grpc_services: [{ envoy_grpc: { cluster_name: "sds" } }],
      },
      resource_api_version: "V3",
    },
  });
  const tls = {
    "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
    require_client_certificate: true,
    common_tls_context: {
      tls_certificate_sds_secret_configs: [sds("default")],
      combined_validation_context: {
        default_validation_context: {},
        validation_context_sds_secret_config: sds("ROOTCA"),
      },
    },
  };
  const echo = {
    name: "echo",
    typed_config: { "@type": "type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo" },
  };
  const address = { socket_address: { address: "127.0.0.1", port_value: port } };
  return {
    node: { id: "n", cluster: "c" },
    static_resources: {
      listeners: [
        {
          name: "l",
          address,
          filter_chains: [{ filters: [echo], transport_socket: { name: "tls", typed_config: tls } }],
        },
      ],
      clusters: [
        {
          name: "sds",
          type: "STATIC",
          typed_extension_protocol_options: {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
              "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
              explicit_http_config: { http2_protocol_options: {} },
            },
          },
          load_assignment: {
            cluster_name: "sds",
            endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path: socket } } } }] }],
          },
        },
      ],
    },
  };
}

async function startEnvoy(t: Context, socket: string, api: "GRPC" | "DELTA_GRPC") {
  const [port = 0] = await freePorts(1);
  const args = ["--config-yaml", JSON.stringify(bootstrap(socket, port, api)), "--concurrency", "1"];
  const child = spawn(ENVOY, [...args, "--disable-hot-restart", "-l", "warning"]);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  t.after(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  return { port, output: () => output };
}

interface Client {
  readonly key: string;
  readonly cert: string;
  readonly ca: string;
}

async function clientOf(root: Issuer): Promise<Client> {
  const key = await generateKey(P256);
  const chain = await signedChain(certificateRequest({ identity: IDENTITY, ...key }), root, IDENTITY);
  return { key: key.pem, cert: chain[0] ?? "", ca: root.certificate.toString() };
}

/** The certificate that the port shows a client that it believes; undefined when one of both does not believe the other. */
function shown(port: number, client: Client): Promise<X509Certificate | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, ...client, checkServerIdentity: () => undefined });
    const settle = (certificate: X509Certificate | undefined) => {
      socket.destroy();
      resolve(certificate);
    };
    socket.on("error", () => settle(undefined));
    socket.on("close", () => settle(undefined));
    // TLS 1.3 refuses a client only after the handshake: an answer is the proof.
    socket.on("secureConnect", () => socket.write("hello"));
    socket.on("data", () => settle(new X509Certificate(socket.getPeerCertificate().raw)));
  });
}

async function setUp(t: Context, key: KeyOptions, root: () => Issuer) {
  const folder = temporaryFolder(t);
  const socket = join(folder, "sds", "socket");
  const stop = new AbortController();
  const metrics = agentMetrics();
  const identity = new WorkloadIdentity({
    identity: IDENTITY,
    key,
    ttlSeconds: 3_600,
    rotation: { gracePeriodRatio: 0.5, gracePeriodRatioJitter: 0 },
    sign: async ({ csr }) => ({ chain: await signedChain(csr, root(), IDENTITY) }),
    log: SILENT,
    metrics,
  });
  const files = new FileSecrets({
    log: SILENT,
    metrics,
    debounceMs: 1,
    systemRoots: undefined,
    resolve: (path) => path,
  });
  const trustBundle = new TrustBundle();
  const own = workloadSecrets({ identity, files, mounted: undefined, trustBundle });
  await serveUnix(socket, [secretDiscoveryService({ sources: [own, files], log: SILENT, metrics: agentMetrics() })], {
    signal: stop.signal,
  });
  let running: Promise<void> | undefined;
  t.after(async () => {
    stop.abort();
    await running;
  });
  const run = () => {
    running = identity.run(stop.signal);
  };
  return { folder, socket, identity, trustBundle, run };
}

const KEYS: readonly (readonly [string, KeyOptions])[] = [
  ["P-256", P256],
  ["P-384 as PKCS#8", { curve: "P-384", rsaBits: 2048, pkcs8: true }],
  ["RSA as PKCS#1", { curve: undefined, rsaBits: 2048, pkcs8: false }],
  ["RSA as PKCS#8", { curve: undefined, rsaBits: 2048, pkcs8: true }],
];

for (const [name, key] of KEYS) {
  test(`Envoy waits for the first certificate and takes it, with a key on ${name}`, whereEnvoy, async (t) => {
    const root = await testRoot();
    const { socket, identity, run } = await setUp(t, key, () => root);
    const { port, output } = await startEnvoy(t, socket, key.pkcs8 ? "DELTA_GRPC" : "GRPC");
    const client = await clientOf(root);
    assert.equal(await shown(port, client), undefined);
    run();
    let certificate: X509Certificate | undefined;
    await eventually("a connection", async () => {
      certificate = await shown(port, client);
      return certificate !== undefined;
    });
    assert.equal(certificate?.subjectAltName, `URI:${IDENTITY}`);
    assert.ok(identity.current?.chain.startsWith(certificate?.toString().trim() ?? "?"));
    assert.doesNotMatch(output(), /rejected|NACK/);
  });
}

test("Envoy follows rotation of the certificate and of the root, and believes several roots", whereEnvoy, async (t) => {
  const [first, second] = [await testRoot("first"), await testRoot("second")];
  let root = first;
  const { socket, identity, trustBundle, run } = await setUp(t, P256, () => root);
  run();
  const { port, output } = await startEnvoy(t, socket, "GRPC");
  const [old, young] = [await clientOf(first), await clientOf(second)];
  let serial = "";
  await eventually("the first", async () => {
    serial = (await shown(port, old))?.serialNumber ?? "";
    return serial !== "";
  });
  assert.equal(await shown(port, { ...young, ca: old.ca }), undefined);
  identity.renew();
  await eventually("another certificate", async () => {
    const next = (await shown(port, old))?.serialNumber;
    return next !== undefined && next !== serial;
  });
  root = second;
  identity.renew();
  await eventually("the other root", async () => (await shown(port, young)) !== undefined);
  assert.equal(await shown(port, { ...old, ca: young.ca }), undefined);
  trustBundle.update([first.certificate.toString()]);
  await eventually("both roots", async () => (await shown(port, { ...old, ca: young.ca })) !== undefined);
  assert.notEqual(await shown(port, young), undefined);
  assert.doesNotMatch(output(), /rejected|NACK/);
});

test("openssl verifies the certificate against the roots", async (t) => {
  const root = await testRoot();
  const folder = temporaryFolder(t);
  const key = await generateKey(P256);
  const chain = await signedChain(certificateRequest({ identity: IDENTITY, ...key }), root, IDENTITY);
  const {
    roots,
    chain: text,
    privateKey,
  } = workloadCertificate({ chain }, { key, identity: IDENTITY, now: Date.now() });
  const files = { roots, chain: text, key: privateKey };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  const openssl = (...args: string[]) => spawnSync("openssl", args, { cwd: folder, encoding: "utf8" });
  const { stdout, stderr } = openssl("verify", "-CAfile", "roots", "chain");
  assert.match(stdout + stderr, /chain: OK/);
  const own = openssl("pkey", "-in", "key", "-pubout").stdout;
  assert.equal(openssl("x509", "-in", "chain", "-noout", "-pubkey").stdout, own);
  assert.match(
    openssl("x509", "-in", "chain", "-noout", "-ext", "subjectAltName").stdout,
    /critical\s+URI:spiffe:\/\//,
  );
});
