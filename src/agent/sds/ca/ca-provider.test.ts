/** CAs by their public protocols: local servers that speak them. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Metadata, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from "@grpc/grpc-js";
import { createLogger, type Logger, SILENT } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { readMessage, readString } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import {
  signedChain,
  startFakeControlPlane,
  temporaryFolder,
  testRoot,
} from "../../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../../test/support/free-ports.ts";
import { RAW } from "../../../../test/support/raw-messages.ts";
import { parseAgentConfig } from "../../agent-config.ts";
import type { ControlPlaneOptions } from "../../control-plane.ts";
import { agentMetrics } from "../../metrics.ts";
import { startTokenServer } from "../../sts/token-server-fixture.ts";
import { workloadCertificate } from "../certificate.ts";
import { generateKey } from "../key.ts";
import { caProvider, caProviderName } from "./ca-provider.ts";
import { zoneOf } from "./google-ca-client.ts";

type Context = { after(fn: () => void): void };
type Handler = (request: Buffer, metadata: Metadata) => Promise<Uint8Array>;

const IDENTITY = "spiffe://p.svc.id.goog/ns/default/sa/httpbin";
const CLUSTER_URL = "https://container.googleapis.com/v1/projects/p/locations/us-central1-c/clusters/c";
const POOL = "projects/p/locations/l/caPools/pool";
const forever = new AbortController().signal;

/** A gRPC server with one service, in plain text. */
async function serve(t: Context, service: string, methods: Readonly<Record<string, Handler>>): Promise<string> {
  const server = new Server();
  for (const [name, handler] of Object.entries(methods)) {
    server.addService(
      { [name]: { path: `/${service}/${name}`, requestStream: false, responseStream: false, ...RAW } },
      {
        [name]: (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) =>
          void handler(call.request, call.metadata).then((bytes) => answer(null, Buffer.from(bytes))),
      },
    );
  }
  t.after(() => server.forceShutdown());
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return `127.0.0.1:${port}`;
}

/** The fields of a message that are strings or messages, by number. */
function fieldsOf(bytes: Uint8Array, numbers: readonly number[]): Map<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>();
  readMessage(bytes, {
    bytes: Object.fromEntries(numbers.map((number) => [number, (value: Uint8Array) => void fields.set(number, value)])),
  });
  return fields;
}

const text = (bytes: Uint8Array | undefined) => readString(bytes ?? new Uint8Array());

function chainMessage(chain: readonly string[]): Uint8Array {
  const writer = new MessageWriter();
  for (const certificate of chain) writer.string(1, certificate);
  return writer.finish();
}

type Upstream = Partial<ControlPlaneOptions> & { readonly log?: Logger };

async function setUp(t: Context, env: Record<string, string>, { log = SILENT, ...upstream }: Upstream) {
  const tokens = await startTokenServer(t, () => ({
    body: JSON.stringify({ access_token: "federated", expires_in: 60 }),
  }));
  const config = parseAgentConfig({
    TRUST_DOMAIN: "p.svc.id.goog",
    SECURE_TOKEN_ENDPOINT: `http://${tokens.host}/v1/token`,
    ...env,
  }).config.identity;
  const sign = await caProvider({
    config,
    upstream: { address: "", rootCertificate: undefined, subjectAltName: "", headers: {}, ...upstream },
    fetchToken: async () => "own-token",
    clusterUrl: CLUSTER_URL,
    log,
    metrics: agentMetrics(),
  });
  const key = await generateKey({ curve: "P-256", rsaBits: 2048, pkcs8: false });
  const csr = certificateRequest({ identity: IDENTITY, ...key });
  return { sign, key, csr, tokens };
}

test("a CA that cannot be reached is told of in the scope ca", async (t) => {
  const [port] = await freePorts(1);
  const enough = new AbortController();
  const lines: string[] = [];
  const log = createLogger({
    write: (line) => {
      lines.push(line);
      enough.abort();
    },
  });
  const { sign, csr } = await setUp(t, { CA_PROVIDER: "Citadel" }, { address: `127.0.0.1:${port}`, log });
  await assert.rejects(sign({ csr, ttlSeconds: 7_200 }, enough.signal));
  assert.match(lines[0] ?? "", /\twarn\tca\tca request failed, starting attempt 1 in /);
});

test("GoogleCA signs over google.security.meshca.v1, with a federated token and the zone", async (t) => {
  const root = await testRoot();
  const seen: { id: string; csr: string; seconds: number; metadata: Metadata }[] = [];
  const address = await serve(t, "google.security.meshca.v1.MeshCertificateService", {
    CreateCertificate: async (request, metadata) => {
      const fields = fieldsOf(request, [1, 2, 3]);
      let seconds = 0;
      readMessage(fields.get(3) ?? new Uint8Array(), { varint: { 1: (value) => (seconds = value) } });
      seen.push({ id: text(fields.get(1)), csr: text(fields.get(2)), seconds, metadata });
      return chainMessage(await signedChain(text(fields.get(2)), root, IDENTITY));
    },
  });
  const { sign, key, csr, tokens } = await setUp(t, { CA_PROVIDER: "GoogleCA" }, { address });
  const signed = await sign({ csr, ttlSeconds: 7_200 }, forever);
  workloadCertificate(signed, { key, identity: IDENTITY, now: Date.now() });
  assert.match(seen[0]?.id ?? "", /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  assert.deepEqual([seen[0]?.csr, seen[0]?.seconds], [csr, 7_200]);
  assert.deepEqual(seen[0]?.metadata.get("authorization"), ["Bearer federated"]);
  assert.deepEqual(seen[0]?.metadata.get("x-goog-request-params"), ["location=locations/us-central1-c"]);
  const exchange = JSON.parse(tokens.asked[0]?.body ?? "{}");
  assert.deepEqual(
    [exchange.subjectToken, exchange.audience],
    ["own-token", `identitynamespace:p.svc.id.goog:${CLUSTER_URL}`],
  );
});

test("GoogleCAS signs over privateca.v1 for the caller's identity, and takes all roots of the pool", async (t) => {
  const [root, other] = [await testRoot(), (await testRoot("other")).certificate.toString()];
  const seen: { request: Buffer; metadata: Metadata }[] = [];
  const address = await serve(t, "google.cloud.security.privateca.v1.CertificateAuthorityService", {
    CreateCertificate: async (request, metadata) => {
      seen.push({ request, metadata });
      const certificate = fieldsOf(request, [3]).get(3) ?? new Uint8Array();
      const config = fieldsOf(certificate, [3]).get(3) ?? new Uint8Array();
      const csr = text(fieldsOf(fieldsOf(config, [3]).get(3) ?? new Uint8Array(), [1]).get(1));
      const [leaf = "", issuer = ""] = await signedChain(csr, root, IDENTITY);
      return new MessageWriter().string(11, issuer).string(9, leaf).finish();
    },
    FetchCaCerts: async (request, metadata) => {
      seen.push({ request, metadata });
      const own = root.certificate.toString();
      return new MessageWriter()
        .bytes(1, chainMessage([own]))
        .bytes(1, chainMessage(["intermediate", other]))
        .bytes(1, chainMessage([own]))
        .finish();
    },
  });
  const env = { CA_PROVIDER: "GoogleCAS", CA_ADDR: POOL, GOOGLE_CAS_ENDPOINT: address };
  const { sign, key, csr } = await setUp(t, env, { address: POOL });
  const signed = await sign({ csr, ttlSeconds: 3_600 }, forever);
  const { roots } = workloadCertificate(signed, { key, identity: IDENTITY, now: Date.now() });
  assert.deepEqual(signed.roots, [root.certificate.toString(), other].sort());
  assert.ok(roots.includes(other));
  const [create, fetched] = seen;
  const request = fieldsOf(create?.request ?? Buffer.alloc(0), [1, 2, 3]);
  assert.equal(text(request.get(1)), POOL);
  assert.match(text(request.get(2)), /^csr-workload-[0-9a-f]{8}$/);
  let subjectMode = 0;
  readMessage(request.get(3) ?? new Uint8Array(), { varint: { 7: (value) => (subjectMode = value) } });
  assert.equal(subjectMode, 2);
  assert.deepEqual(create?.metadata.get("authorization"), ["Bearer federated"]);
  assert.deepEqual(create?.metadata.get("x-goog-request-params"), [`parent=${encodeURIComponent(POOL)}`]);
  assert.equal(text(fieldsOf(fetched?.request ?? Buffer.alloc(0), [1]).get(1)), POOL);
});

test("Google's CAs fail with the words of the token server when it gives no token", async (t) => {
  const tokens = await startTokenServer(t, () => ({ status: 403, body: "no binding" }));
  const env = { CA_PROVIDER: "GoogleCA", SECURE_TOKEN_ENDPOINT: `http://${tokens.host}/v1/token` };
  const { sign, csr } = await setUp(t, env, { address: "127.0.0.1:1" });
  await assert.rejects(sign({ csr, ttlSeconds: 60 }, forever), {
    code: "CA_FAILED",
    message: /failed to exchange federated token \(HTTP status 403\): no binding/,
  });
});

test("Citadel takes the token as it is", async (t) => {
  const plane = await startFakeControlPlane();
  t.after(() => plane.close());
  const rootCertificate = join(temporaryFolder(t), "root.pem");
  writeFileSync(rootCertificate, plane.rootPem);
  const { sign, csr, tokens } = await setUp(t, {}, { address: plane.address, rootCertificate });
  await sign({ csr, ttlSeconds: 60 }, forever);
  assert.deepEqual(plane.signings[0]?.metadata.get("authorization"), ["Bearer own-token"]);
  assert.equal(tokens.asked.length, 0);
});

test("caProvider() refuses providers that it does not know, and knows Google by its address", async (t) => {
  await assert.rejects(setUp(t, { CA_PROVIDER: "Vault" }, {}), {
    code: "CA_PROVIDER_UNKNOWN",
    message: /CA provider "Vault" not registered: choose Citadel, GoogleCA/,
  });
  assert.equal(caProviderName({ caProvider: "Citadel", caAddress: "meshca.googleapis.com:443" }), "GoogleCA");
  assert.equal(caProviderName({ caProvider: "Citadel", caAddress: "" }), "Citadel");
});

test("zoneOf() finds the zone in the URL of a cluster", () => {
  assert.equal(zoneOf(CLUSTER_URL), "us-central1-c");
  assert.equal(zoneOf("https://x/"), undefined);
});
