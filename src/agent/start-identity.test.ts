/** The workload's secrets as a whole: from the environment and files to what comes over the socket. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Client, credentials, type status } from "@grpc/grpc-js";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { DiscoveryRequestSchema, DiscoveryResponseSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { createLogger } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import {
  eventually,
  type FakeOptions,
  signedChain,
  startFakeControlPlane,
  temporaryFolder,
  testRoot,
} from "../../test/support/fake-control-plane.ts";
import { RAW } from "../../test/support/raw-messages.ts";
import { parseAgentConfig } from "./agent-config.ts";
import type { AgentContext } from "./agent-context.ts";
import { agentMetrics } from "./metrics.ts";
import { openSockets } from "./open-sockets.ts";
import { HERE } from "./place.ts";
import { planIdentity } from "./plan-identity.ts";
import { findForeignServer } from "./sds/existing-socket.ts";
import { generateKey } from "./sds/key.ts";
import { secretDiscoveryService } from "./sds/service.ts";
import { startIdentity } from "./start-identity.ts";
import { serveUnix } from "./unix-server.ts";

type Context = { after(fn: () => void | Promise<void>): void };
type Needed = Pick<
  AgentContext,
  "config" | "proxyConfig" | "place" | "log" | "metrics" | "stop" | "done" | "node" | "servedByOthers"
>;

const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";
const SOCKET = "var/run/secrets/workload-spiffe-uds/socket";
const FILES_SOCKET = "var/run/secrets/credential-uds/files-socket";
const TOKEN = "var/run/secrets/tokens/istio-token";

async function setUp(t: Context, env: Record<string, string> = {}, fake: FakeOptions = {}) {
  const plane = await startFakeControlPlane(fake);
  const folder = temporaryFolder(t);
  const put = (file: string, text: string) => {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  };
  put("var/run/secrets/istio/root-cert.pem", plane.rootPem);
  put(TOKEN, "token");
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const end = new AbortController();
  const running: Promise<void>[] = [];
  t.after(async () => {
    end.abort();
    await Promise.all(running);
    plane.close();
  });
  const { config } = parseAgentConfig({
    POD_NAMESPACE: "default",
    SERVICE_ACCOUNT: "httpbin",
    ECC_SIGNATURE_ALGORITHM: "ECDSA",
    ...env,
  });
  const place = { ...HERE, folder };
  const start = async () => {
    const needed: Needed = {
      config,
      proxyConfig: { ...DEFAULT_PROXY_CONFIG, discoveryAddress: plane.address },
      place,
      log,
      metrics: agentMetrics(),
      stop: end.signal,
      done: end.signal,
      node: { metadata: {} } as AgentContext["node"],
      servedByOthers: await findForeignServer(config.identity.socketFile, place, log),
    };
    const context = needed as AgentContext;
    const started = await startIdentity(context, await planIdentity(context), running);
    if (started.identity !== undefined) running.push(started.identity.run(end.signal));
    const { sds } = await openSockets(context);
    if (sds !== undefined) await serveUnix(sds, [secretDiscoveryService(started.secrets)], { signal: end.signal });
    return started;
  };
  return {
    plane,
    folder,
    put,
    lines,
    start,
    end,
    fetch: (socket: string, name: string) => fetchSecret(join(folder, socket), name),
  };
}

async function fetchSecret(socket: string, name: string): Promise<string> {
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  const request = Buffer.from(
    toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames: [name] })),
  );
  const method = "/envoy.service.secret.v3.SecretDiscoveryService/FetchSecrets";
  try {
    const answer = await new Promise<Buffer>((resolve, reject) => {
      client.makeUnaryRequest(method, RAW.requestSerialize, RAW.responseDeserialize, request, (error, bytes) =>
        bytes === undefined ? reject(error) : resolve(bytes),
      );
    });
    const [any] = fromBinary(DiscoveryResponseSchema, answer).resources;
    const secret = any && anyUnpack(any, SecretSchema);
    const source =
      secret?.type.case === "tlsCertificate"
        ? secret.type.value.certificateChain
        : secret?.type.case === "validationContext"
          ? secret.type.value.trustedCa
          : undefined;
    return source?.specifier.case === "inlineBytes" ? String(Buffer.from(source.specifier.value)) : "?";
  } finally {
    client.close();
  }
}

async function mounted() {
  const root = await testRoot("mounted");
  const key = await generateKey({ curve: "P-256", rsaBits: 2048, pkcs8: false });
  const [leaf = "", issuer = ""] = await signedChain(
    certificateRequest({ identity: IDENTITY, ...key }),
    root,
    IDENTITY,
  );
  return { leaf, key: key.pem, issuer };
}

test("startIdentity() serves what the CA signs, and writes it where asked", async (t) => {
  const { plane, folder, start, fetch } = await setUp(t, { OUTPUT_CERTS: "out" });
  const { identity } = await start();
  const chain = await fetch(SOCKET, "default");
  assert.equal(chain, identity?.current?.chain);
  assert.equal(await fetch(SOCKET, "ROOTCA"), plane.rootPem.trim());
  await eventually("the files", () => {
    try {
      return readFileSync(join(folder, "out/cert-chain.pem"), "utf8") === chain;
    } catch {
      return false;
    }
  });
  assert.equal(readFileSync(join(folder, "out/key.pem"), "utf8"), identity?.current?.privateKey);
});

test("startIdentity() asks no CA when workload-spiffe-credentials has all files, and follows them", async (t) => {
  const { plane, put, start, fetch } = await setUp(t);
  const [first, second] = [await mounted(), await mounted()];
  const publish = ({ leaf, key, issuer }: typeof first) => {
    for (const [name, text] of Object.entries({ "cert-chain.pem": leaf, "key.pem": key, "root-cert.pem": issuer }))
      put(`var/run/secrets/workload-spiffe-credentials/${name}`, text);
  };
  publish(first);
  assert.equal((await start()).identity, undefined);
  assert.equal(await fetch(SOCKET, "default"), first.leaf);
  assert.equal(await fetch(SOCKET, "ROOTCA"), first.issuer.trim());
  publish(second);
  await eventually("the second", async () => (await fetch(SOCKET, "default")) === second.leaf);
  assert.equal(plane.signings.length, 0);
});

test("startIdentity() waits for mounted certificates that are not there yet", async (t) => {
  const { put, start, fetch, plane } = await setUp(t, { FILE_MOUNTED_CERTS: "true" });
  await start();
  const waiting = fetch(SOCKET, "default");
  const { leaf, key } = await mounted();
  put("etc/certs/key.pem", key);
  put("etc/certs/cert-chain.pem", leaf);
  assert.equal(await waiting, leaf);
  assert.equal(plane.signings.length, 0);
});

test("startIdentity() takes mounted roots and the CA's certificate where only the roots are mounted", async (t) => {
  const { put, start, fetch, plane } = await setUp(t);
  const { issuer } = await mounted();
  put("etc/certs/root-cert.pem", issuer);
  const { identity } = await start();
  assert.equal(await fetch(SOCKET, "ROOTCA"), issuer.trim());
  assert.equal(await fetch(SOCKET, "default"), identity?.current?.chain);
  assert.equal(plane.signings.length, 1);
});

test("startIdentity() leaves the workload's certificate to a foreign server, and serves files beside it", async (t) => {
  const { folder, put, start, fetch, plane, lines, end } = await setUp(t, { WORKLOAD_IDENTITY_SOCKET_FILE: "spire" });
  await assert.rejects(start(), {
    code: "SDS_SOCKET_INVALID",
    message: /non-default SDS socket path: .*spire but no socket found/,
  });
  await serveUnix(join(folder, dirname(SOCKET), "spire"), [], { signal: end.signal });
  assert.equal((await start()).identity, undefined);
  const { issuer } = await mounted();
  put("roots.pem", issuer);
  assert.equal(await fetch(FILES_SOCKET, "file-root:roots.pem"), issuer);
  await assert.rejects(fetch(FILES_SOCKET, "default"), { code: 5 satisfies status.NOT_FOUND });
  assert.equal(plane.signings.length, 0);
  assert.match(lines.join(""), /Default Istio SDS Server will only serve files/);
});

test("startIdentity() lets a proxy that asks before the CA is there wait", async (t) => {
  let there = false;
  const refuseSigning = () => (there ? undefined : { code: 14 as status, details: "starting" });
  const { start, fetch } = await setUp(t, {}, { refuseSigning });
  await start();
  const waiting = fetch(SOCKET, "default");
  there = true;
  assert.match(await waiting, /BEGIN CERTIFICATE/);
});

test("startIdentity() uses the token of the moment while it rotates under load", async (t) => {
  const accepted = new Set<string>();
  const { plane, put, start } = await setUp(t);
  const { identity } = await start();
  for (let round = 1; round <= 20; round++) {
    await eventually("a certificate", () => plane.signings.length >= round);
    accepted.add(String(plane.signings.at(-1)?.metadata.get("authorization")[0]));
    put(TOKEN, String(round));
    identity?.renew();
  }
  assert.equal(accepted.size, 20);
  assert.ok(!accepted.has("undefined"));
});

test("startIdentity() serves no secrets without Envoy, and writes them all the same", async (t) => {
  const { folder, start } = await setUp(t, { DISABLE_ENVOY: "true", OUTPUT_CERTS: "out" });
  const { identity } = await start();
  await eventually("the files", () => existsSync(join(folder, "out/cert-chain.pem")));
  assert.equal(readFileSync(join(folder, "out/cert-chain.pem"), "utf8"), identity?.current?.chain);
  assert.equal(existsSync(join(folder, SOCKET)), false);
});

test("startIdentity() refuses keys that are too small and providers that it does not know", async (t) => {
  const small = await setUp(t, { ECC_SIGNATURE_ALGORITHM: "", WORKLOAD_RSA_KEY_SIZE: "1024" });
  await assert.rejects(small.start(), { code: "IDENTITY_INVALID", message: /minimum required size of 2048/ });
  const unknown = await setUp(t, { CA_PROVIDER: "Vault" });
  await assert.rejects(unknown.start(), { code: "CA_PROVIDER_UNKNOWN" });
});
