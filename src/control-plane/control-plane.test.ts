import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import { SignJWT } from "jose";
import { CREATE_CERTIFICATE } from "#ca/service/certificate-service.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "#gen/istio/v1/auth/ca_pb.ts";
import { createLogger } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { expositionProblems } from "../../test/support/exposition.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { object } from "../../test/support/objects.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import { ControlPlane } from "./control-plane.ts";
import type { DiscoveryConfig } from "./settings/config.ts";

const ISSUER = "https://issuer.example";
const FREE = { host: "127.0.0.1", port: 0 };
const DAY = 86_400_000;
const SERVICE = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: httpbin, namespace: default}
spec:
  hosts: [httpbin.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: DNS
`;

describe("ControlPlane", () => {
  let folder: string;
  let issuerKey: KeyObject;
  let config: DiscoveryConfig;
  let lines: string[];
  let stopping: AbortController;
  let running: Promise<void>;
  let ended: boolean;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "control-plane-"));
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    issuerKey = privateKey;
    const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one", alg: "ES256" }] });
    mkdirSync(join(folder, "config"));
    config = {
      folders: [join(folder, "config")],
      kubernetes: undefined,
      meshConfig: { file: join(folder, "mesh"), isGiven: false },
      networksFile: "",
      features: DEFAULT_FEATURES,
      namespace: "istio-system",
      podName: "",
      tokenAudiences: ["istio-ca"],
      revision: "",
      listen: { http: FREE, monitoring: FREE, grpc: FREE, secureGrpc: FREE },
      keepalive: { intervalMs: 30_000, timeoutMs: 10_000, maxConnectionAgeMs: undefined },
      shutdownMs: 1_000,
      ca: {
        enabled: true,
        folder: join(folder, "ca"),
        defaultTtlMs: DAY,
        maxTtlMs: 90 * DAY,
        rootLifetimeMs: 3650 * DAY,
        rootKey: "P-256",
        passphraseFile: undefined,
        gracePercent: 20,
        checkIntervalMs: 3_600_000,
        requestsPerIdentity: 100,
        multiRoot: false,
      },
      tlsFiles: undefined,
      customHosts: [],
      jwtRule: { issuer: ISSUER, audiences: ["istio-ca"], keys: { kind: "inline", jwks } },
      keys: {
        allowLocal: true,
        allowedRanges: [],
        blockedRanges: [],
        insecure: false,
        refreshMs: DAY,
        extraRootsFile: "",
      },
      resolvesGatewayNames: true,
      debugOnHttp: true,
      xds: { checksIdentity: true, requestsPerSecond: 0, countsPatches: false },
      log: { json: false, levels: {}, targets: [] },
    };
    lines = [];
    stopping = new AbortController();
    running = Promise.resolve();
  });
  afterEach(async () => {
    stopping.abort();
    await running.catch(() => undefined);
    rmSync(folder, { recursive: true });
  });

  function run(changes: Partial<DiscoveryConfig> = {}): void {
    const log = createLogger({ write: (line) => lines.push(line) });
    ended = false;
    running = new ControlPlane({ ...config, ...changes }, log).run(stopping.signal).finally(() => {
      ended = true;
    });
  }

  /** Until the log has a line like that; a control plane that failed ends the wait. */
  async function logged(pattern: RegExp): Promise<string> {
    for (;;) {
      const found = lines.map((line) => pattern.exec(line)).find((match) => match !== null);
      if (found) return found[1] ?? "";
      assert.ok(!ended, `the control plane ended without a line like ${pattern}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  const address = (service: string) => logged(new RegExp(`starting ${service} at (\\S+)`));

  async function get(path: string, service = "HTTP service"): Promise<{ status: number; text: string }> {
    const response = await fetch(`http://${await address(service)}${path}`);
    return { status: response.status, text: await response.text() };
  }

  async function token(): Promise<string> {
    return new SignJWT({ sub: "system:serviceaccount:default:httpbin" })
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(ISSUER)
      .setAudience("istio-ca")
      .setExpirationTime("1h")
      .sign(issuerKey);
  }

  async function certificate(service: string, authorization: string): Promise<readonly string[]> {
    const port = (await address(service)).split(":")[1];
    const isTls = service.startsWith("secure");
    const root = isTls ? readFileSync(join(config.ca.folder, "root-cert.pem")) : Buffer.alloc(0);
    const client = new Client(`localhost:${port}`, isTls ? credentials.createSsl(root) : credentials.createInsecure());
    const metadata = new Metadata();
    metadata.set("authorization", authorization);
    const csr = certificateRequest({
      identity: "spiffe://cluster.local/ns/default/sa/other",
      ...generateKeyPairSync("ec", { namedCurve: "prime256v1" }),
    });
    const encode = (message: typeof request) => Buffer.from(toBinary(IstioCertificateRequestSchema, message));
    const decode = (bytes: Buffer) => fromBinary(IstioCertificateResponseSchema, bytes);
    const request = create(IstioCertificateRequestSchema, { csr, validityDuration: 3600n });
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(CREATE_CERTIFICATE, encode, decode, request, metadata, (error, response) => {
        client.close();
        if (error) reject(error);
        else resolve(response?.certChain ?? []);
      });
    });
  }

  test("issues a certificate for the identity of a token over TLS, and none in plain text", async () => {
    run();
    await logged(/control plane is ready/);
    const [leaf = ""] = await certificate("secure gRPC discovery service", `Bearer ${await token()}`);
    assert.equal(new X509Certificate(leaf).subjectAltName, "URI:spiffe://cluster.local/ns/default/sa/httpbin");
    await assert.rejects(certificate("secure gRPC discovery service", "Bearer x"), { code: status.UNAUTHENTICATED });
    await assert.rejects(certificate("gRPC discovery service", `Bearer ${await token()}`), {
      code: status.UNIMPLEMENTED,
    });
    const { text } = await get("/metrics", "monitoring service");
    assert.match(text, /^citadel_server_csr_count 2$/m);
    assert.match(text, /^citadel_server_success_cert_issuance_count 1$/m);
    assert.match(text, /^citadel_server_root_cert_expiry_timestamp \d+$/m);
  });

  test("sends a proxy its clusters, and a new one when a file comes", async () => {
    run();
    await logged(/control plane is ready/);
    using proxy = new XdsClient(await address("gRPC discovery service"), { node: nodeOf(proxyOf()) });
    proxy.request(CLUSTER_TYPE);
    const names = async () => (await proxy.take(CLUSTER_TYPE)).resources.map(({ name }) => name);
    assert.ok((await names()).includes("PassthroughCluster"));
    writeFileSync(join(folder, "config/service.yaml"), SERVICE);
    assert.deepEqual(await names(), ["outbound|80||httpbin.example.com"]);
    assert.match((await get("/debug/syncz")).text, /"proxy":"app-1.default"/);
    assert.deepEqual(expositionProblems((await get("/metrics", "monitoring service")).text), []);
  });

  test("fetches the keys of a jwksUri, and sends proxies what it got", async () => {
    const keys = '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}';
    const server = createHttpServer((_, response) => response.end(keys)).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    server.unref();
    const { port } = server.address() as { port: number };
    const jwtRules = [{ issuer: "me", jwksUri: `http://127.0.0.1:${port}/keys` }];
    writeFileSync(join(folder, "config/tokens.yaml"), object("RequestAuthentication", "tokens", { jwtRules }));
    run({ xds: { ...config.xds, checksIdentity: false } });
    await logged(/keys of a token issuer are fetched/);
    using proxy = new XdsClient(await address("gRPC discovery service"), { node: nodeOf(proxyOf()) });
    proxy.request(LISTENER_TYPE);
    // Keys may come a moment after the first answer.
    for (let text = ""; !text.includes(keys); ) {
      const { resources } = await proxy.take(LISTENER_TYPE);
      text = resources.map(({ value }) => Buffer.from(value).toString("latin1")).join();
    }
    const { text: metrics } = await get("/metrics", "monitoring service");
    assert.match(metrics, /^pilot_jwks_resolver_network_fetch_success_total 1$/m);
    server.close();
  });

  test("refuses an xDS stream over TLS without a token, and says why", async () => {
    run();
    await logged(/control plane is ready/);
    const port = (await address("secure gRPC discovery service")).split(":")[1];
    const root = readFileSync(join(config.ca.folder, "root-cert.pem"));
    const client = new Client(`localhost:${port}`, credentials.createSsl(root));
    const asIs = (bytes: Buffer) => bytes;
    const path = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
    const stream = client.makeBidiStreamRequest(path, asIs, asIs);
    const error = await new Promise<Error>((resolve) => stream.on("error", resolve));
    assert.match(error.message, /UNAUTHENTICATED: .*no bearer token and no client certificate of the mesh/);
    client.close();
  });

  describe("a stream without a proof", () => {
    const isServed = async (service: string, headers: Readonly<Record<string, string>> = {}) => {
      const root = service.startsWith("secure") && readFileSync(join(config.ca.folder, "root-cert.pem"), "utf8");
      const options = { node: nodeOf(proxyOf()), headers, ...(root && { root }) };
      using proxy = new XdsClient(await address(service), options);
      proxy.request(CLUSTER_TYPE);
      return await proxy.take(CLUSTER_TYPE).then(
        () => true,
        () => false,
      );
    };
    const [tls, plain] = ["secure gRPC discovery service", "gRPC discovery service"];

    test("is served over TLS where nobody has to prove anything (XDS_AUTH=false)", async () => {
      run({ xds: { ...config.xds, proofOn: "none" } });
      await logged(/control plane is ready/);
      assert.deepEqual([await isServed(tls), await isServed(plain)], [true, true]);
    });

    test("is not served in plain text where that needs one too (XDS_AUTH_PLAINTEXT)", async () => {
      run({ xds: { ...config.xds, proofOn: "all" } });
      await logged(/control plane is ready/);
      assert.equal(await isServed(plain), false);
      const authorization = `Bearer ${await token()}`;
      assert.equal(await isServed(plain, { authorization }), false, "the token is of another account than the proxy");
    });

    test("is served when a trusted gateway tells of its certificate (TRUSTED_GATEWAY_CIDR)", async () => {
      run({ xds: { ...config.xds, proofOn: "all", trustedGateways: ["10.0.0.0/8"] } });
      await logged(/control plane is ready/);
      const told = (uri: string) => ({ "x-forwarded-client-cert": `By=spiffe://a;URI=${uri}` });
      assert.equal(await isServed(plain, told("spiffe://cluster.local/ns/default/sa/default")), true);
      assert.equal(await isServed(tls, told("spiffe://elsewhere/ns/default/sa/default")), false);
    });
  });

  test("answers to /ready, /version and /debug, and stops when told to", async () => {
    writeFileSync(join(folder, "config/service.yaml"), SERVICE);
    run();
    await logged(/control plane is ready/);
    assert.equal((await get("/ready")).status, 200);
    assert.match((await get("/version")).text, /^1\.29\.6-/);
    assert.equal((await get("/version", "monitoring service")).text, (await get("/version")).text);
    assert.match((await get("/debug/registryz")).text, /httpbin\.example\.com/);
    assert.match((await get("/debug/ca")).text, /"signing":\[\{"subject":"O=cluster.local".*"daysLeft":3649/);
    assert.match((await get("/metrics", "monitoring service")).text, /^pilot_services 1$/m);
    stopping.abort();
    await running;
    await assert.rejects(get("/ready"));
  });

  test("makes no root and serves no proxy when it is told to stop while it starts", async () => {
    stopping.abort();
    run();
    await running;
    assert.equal(existsSync(config.ca.folder), false);
    assert.ok(!lines.some((line) => line.includes("gRPC")));
  });

  test("starts without its folder, says so in one line, and reads the folder when it comes", async () => {
    const missing = join(folder, "later");
    run({ folders: [missing] });
    await logged(/control plane is ready/);
    assert.equal(lines.filter((line) => line.includes(missing)).length, 1);
    mkdirSync(join(folder, "prepared"));
    writeFileSync(join(folder, "prepared/service.yaml"), SERVICE);
    renameSync(join(folder, "prepared"), missing);
    while (!(await get("/debug/registryz")).text.includes("httpbin"))
      await new Promise((resolve) => setTimeout(resolve, 5));
  });

  test("names flag and address when a port is in use, and lets go of the others", async () => {
    const blocker = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => blocker.once("listening", resolve));
    const { port } = blocker.address() as { port: number };
    run({ listen: { ...config.listen, secureGrpc: { host: "127.0.0.1", port } } });
    await assert.rejects(running, {
      code: "LISTEN_FAILED",
      message: `cannot listen on 127.0.0.1:${port} (--secureGRPCAddr): the port is in use by another process`,
    });
    await assert.rejects(get("/ready"));
    blocker.close();
  });

  test("opens no listener that is turned off, and serves metrics with the rest when it has to", async () => {
    const listen = { http: FREE, monitoring: undefined, grpc: undefined, secureGrpc: FREE };
    run({ listen });
    await logged(/control plane is ready/);
    assert.equal(lines.filter((line) => line.includes("starting ")).length, 2);
    assert.equal((await get("/metrics")).status, 200);
  });

  test("without a CA there is no TLS listener, and it says so", async () => {
    run({ ca: { ...config.ca, enabled: false } });
    await logged(/no TLS listener: there is neither a CA \(ENABLE_CA_SERVER\) nor a certificate \(--tlsCertFile\)/);
    await logged(/control plane is ready/);
  });

  test("fails with one error when the CA's folder is half-written", async () => {
    mkdirSync(config.ca.folder);
    writeFileSync(join(config.ca.folder, "root-cert.pem"), "");
    run();
    await assert.rejects(running, { code: "CA_FILES_INCOMPLETE" });
  });

  test("has no debug pages when they are turned off", async () => {
    run({ debugOnHttp: false });
    await logged(/control plane is ready/);
    assert.equal((await get("/debug/configz")).status, 404);
    assert.equal((await get("/ready")).status, 200);
  });
});
