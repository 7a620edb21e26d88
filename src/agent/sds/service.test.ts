import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { Client, type ClientDuplexStream, credentials } from "@grpc/grpc-js";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { createLogger, type LogLevel } from "#lib/log/log.ts";
import { readField, readText } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { RAW } from "../../../test/support/raw-messages.ts";
import { agentMetrics } from "../metrics.ts";
import { serveUnix } from "../unix-server.ts";
import { isServed } from "../unix-socket.ts";
import type { WorkloadCertificate } from "./certificate.ts";
import { FileSecrets } from "./file-secrets.ts";
import type { EncodeOptions } from "./messages.ts";
import { secretDiscoveryService } from "./service.ts";
import { TrustBundle } from "./trust-bundle.ts";
import type { CertificateChange } from "./workload-identity.ts";
import { workloadSecrets } from "./workload-secrets.ts";

type Context = { after(fn: () => void): void };

/** Looks like a root, for those who do not look closely. */
const pem = (text: string) =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString("base64")}\n-----END CERTIFICATE-----`;
const ROOTS = pem("roots");

const certificate = (chain: string, roots = ROOTS): WorkloadCertificate => ({
  chain,
  privateKey: `key of ${chain}`,
  roots,
  createdAt: 0,
  expiresAt: 1,
});

/** A source that a test replaces the certificate of. */
class FakeSource {
  readonly listeners = new Set<(change: CertificateChange) => void>();
  current: WorkloadCertificate | undefined;
  renewals = 0;
  hurries = 0;

  hurry(): void {
    if (this.current === undefined) this.hurries++;
  }

  renew(): void {
    this.renewals++;
  }

  subscribe(listener: (change: CertificateChange) => void) {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  replace(next: WorkloadCertificate): void {
    const rootsChanged = this.current?.roots !== next.roots;
    this.current = next;
    for (const listener of this.listeners) listener({ certificate: next, rootsChanged });
  }
}

async function setUp(t: Context, encode: EncodeOptions = {}, level: LogLevel = "info") {
  const path = join(temporaryFolder(t), "uds", "socket");
  const source = new FakeSource();
  const lines: string[] = [];
  const stop = new AbortController();
  const log = createLogger({ write: (line) => lines.push(line), levels: { default: level } });
  const trustBundle = new TrustBundle();
  const metrics = agentMetrics();
  const files = new FileSecrets({
    log,
    metrics,
    debounceMs: 1,
    systemRoots: undefined,
    resolve: (file) => file,
  });
  const own = workloadSecrets({ identity: source, files, mounted: undefined, trustBundle });
  const service = secretDiscoveryService({
    sources: [own, files],
    log,
    metrics,
    encode: () => encode,
    fetchTimeoutMs: 300,
  });
  await serveUnix(path, [service], { signal: stop.signal });
  const client = new Client(`unix:${path}`, credentials.createInsecure());
  t.after(() => {
    client.close();
    stop.abort();
  });
  const open = (method: "StreamSecrets" | "DeltaSecrets"): ClientDuplexStream<Buffer, Buffer> => {
    const path = `/envoy.service.secret.v3.SecretDiscoveryService/${method}`;
    const stream = client.makeBidiStreamRequest(path, RAW.requestSerialize, RAW.responseDeserialize);
    stream.on("error", () => undefined); // cancelling is one
    return stream;
  };
  const fetch = (request: Buffer) =>
    new Promise<Buffer>((resolve, reject) => {
      const method = "/envoy.service.secret.v3.SecretDiscoveryService/FetchSecrets";
      const { requestSerialize, responseDeserialize } = RAW;
      client.makeUnaryRequest(method, requestSerialize, responseDeserialize, request, (error, answer) =>
        answer === undefined ? reject(error) : resolve(answer),
      );
    });
  return { path, source, lines, open, fetch, trustBundle, metrics };
}

const sotwRequest = (
  resourceNames: string[],
  more: { responseNonce?: string; errorDetail?: { message: string } } = {},
) => Buffer.from(toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { resourceNames, ...more })));
const deltaRequest = (resourceNamesSubscribe: string[]) =>
  Buffer.from(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { resourceNamesSubscribe })));

const inline = (source: { specifier: { value?: unknown } } | undefined) =>
  String(Buffer.from(source?.specifier.value as Uint8Array));

async function nextSotw(stream: ClientDuplexStream<Buffer, Buffer>) {
  const [bytes] = (await once(stream, "data")) as [Buffer];
  const response = fromBinary(DiscoveryResponseSchema, bytes);
  const secrets = response.resources.map((any) => anyUnpack(any, SecretSchema));
  return { response, secrets };
}

/** All secrets that arrive from now on. */
function collect(stream: ClientDuplexStream<Buffer, Buffer>) {
  const received: { secret: string; version: string }[] = [];
  stream.on("data", (bytes: Buffer) => {
    const { resources, versionInfo } = fromBinary(DiscoveryResponseSchema, bytes);
    for (const any of resources) received.push({ secret: text(anyUnpack(any, SecretSchema)), version: versionInfo });
  });
  return received;
}

const text = (secret: Awaited<ReturnType<typeof nextSotw>>["secrets"][number]) => {
  if (secret?.type.case === "tlsCertificate") {
    return `${secret.name}: ${inline(secret.type.value.certificateChain)}, ${inline(secret.type.value.privateKey)}`;
  }
  return secret?.type.case === "validationContext" ? `${secret.name}: ${inline(secret.type.value.trustedCa)}` : "?";
};

test("SDS tells at debug who asks for what, and what is sent, without what is in it", async (t) => {
  const { source, open, lines } = await setUp(t, {}, "debug");
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  await nextSotw(stream);
  assert.match(
    lines.join(""),
    /\tdebug\tsecrets asked for\tnames=\[default\]\n.*\tdebug\tsecret sent\tresource=default nonce=1\n/,
  );
  assert.doesNotMatch(lines.join(""), /chain 1/);
  stream.cancel();
});

test("SDS sends certificate and roots over a state-of-the-world stream, each under its name", async (t) => {
  const { source, open } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  const { response, secrets } = await nextSotw(stream);
  assert.equal(response.typeUrl, "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret");
  assert.deepEqual(secrets.map(text), ["default: chain 1, key of chain 1"]);
  stream.write(sotwRequest(["default", "ROOTCA"], { responseNonce: response.nonce }));
  assert.deepEqual((await nextSotw(stream)).secrets.map(text), [`ROOTCA: ${ROOTS}`]);
  stream.cancel();
});

test("SDS sends a secret when it is there, if it was asked for before", async (t) => {
  const { source, open } = await setUp(t);
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["ROOTCA"]));
  const waiting = nextSotw(stream);
  await onceListening(source);
  source.replace(certificate("chain 1"));
  assert.deepEqual((await waiting).secrets.map(text), [`ROOTCA: ${ROOTS}`]);
  stream.cancel();
});

test("SDS pushes a new certificate, and new roots only when they changed", async (t) => {
  const { source, open } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default", "ROOTCA"]));
  const received = collect(stream);
  await eventually("both", () => received.length === 2);
  source.replace(certificate("chain 2"));
  source.replace(certificate("chain 3", pem("new roots")));
  await eventually("all pushes", () => received.length === 5);
  assert.deepEqual(
    received.map(({ secret }) => secret),
    [
      "default: chain 1, key of chain 1",
      `ROOTCA: ${ROOTS}`,
      "default: chain 2, key of chain 2",
      "default: chain 3, key of chain 3",
      `ROOTCA: ${pem("new roots")}`,
    ],
  );
  assert.equal(new Set(received.map(({ version }) => version)).size, 5);
  stream.cancel();
});

test("SDS does not answer an acknowledgement, and logs a refusal", async (t) => {
  const { source, open, lines, metrics } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  const { response } = await nextSotw(stream);
  stream.write(sotwRequest(["default"], { responseNonce: response.nonce }));
  stream.write(sotwRequest(["default"], { responseNonce: response.nonce, errorDetail: { message: "bad\nkey" } }));
  // The next thing that comes is the push, not an answer to one of these.
  stream.write(sotwRequest(["default", "ROOTCA"], { responseNonce: response.nonce }));
  assert.deepEqual((await nextSotw(stream)).secrets.map(text), [`ROOTCA: ${ROOTS}`]);
  assert.match(lines.join(""), /warn\tEnvoy refused default: bad\\u000akey/);
  assert.match(metrics.text(), /istio_agent_pilot_total_xds_rejects{type="sds"} 1\n/);
  assert.match(metrics.text(), /istio_agent_pilot_xds_send_time_count 2\n/);
  stream.cancel();
});

test("SDS speaks delta as well", async (t) => {
  const { source, open } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("DeltaSecrets");
  stream.write(deltaRequest(["default", "ROOTCA"]));
  const messages: Buffer[] = [];
  stream.on("data", (bytes: Buffer) => messages.push(bytes));
  await eventually("both", () => messages.length === 2);
  const resources = messages.flatMap((bytes) => fromBinary(DeltaDiscoveryResponseSchema, bytes).resources);
  assert.deepEqual(
    resources.map(({ name }) => name),
    ["default", "ROOTCA"],
  );
  const [first] = resources;
  assert.equal(first?.resource && text(anyUnpack(first.resource, SecretSchema)), "default: chain 1, key of chain 1");
  stream.cancel();
});

test("SDS refuses secrets it does not have and bytes that are no request, and goes on", async (t) => {
  const { source, open, lines } = await setUp(t);
  source.current = certificate("chain 1");
  for (const [request, code] of [
    [sotwRequest(["file-cert:other"]), 5],
    [Buffer.from([0x1a, 0x7f, 1]), 3],
  ] as const) {
    const stream = open("StreamSecrets");
    stream.write(request);
    stream.resume();
    const [error] = await once(stream, "error");
    assert.equal(error.code, code);
  }
  assert.match(lines.join(""), /The stream of secrets ends: the agent has no secret file-cert:other/);
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  assert.equal((await nextSotw(stream)).secrets.length, 1);
  stream.cancel();
});

test("SDS gives secrets to a single request, all that it names", async (t) => {
  const { source, fetch } = await setUp(t);
  source.current = certificate("chain 1");
  const { resources, typeUrl } = fromBinary(DiscoveryResponseSchema, await fetch(sotwRequest(["ROOTCA", "default"])));
  assert.equal(typeUrl, "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret");
  assert.deepEqual(
    resources.map((any) => text(anyUnpack(any, SecretSchema))),
    [`ROOTCA: ${ROOTS}`, "default: chain 1, key of chain 1"],
  );
  assert.equal(source.listeners.size, 0);
});

test("SDS gives the workload's certificate under whatever name it is asked for", async (t) => {
  const { source, open } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["kubernetes://mine"]));
  const given = async () => (await nextSotw(stream)).secrets.map(text);
  assert.deepEqual(await given(), ["kubernetes://mine: chain 1, key of chain 1"]);
  source.replace(certificate("chain 2"));
  assert.deepEqual(await given(), ["kubernetes://mine: chain 2, key of chain 2"]);
  stream.write(sotwRequest(["file-server"]));
  assert.deepEqual(await given(), ["file-server: chain 2, key of chain 2"]);
  stream.cancel();
});

test("SDS lets a single request wait for a secret, and not for ever", async (t) => {
  const { source, fetch, lines } = await setUp(t);
  const waiting = fetch(sotwRequest(["default"]));
  await onceListening(source);
  source.replace(certificate("chain 1"));
  assert.equal(fromBinary(DiscoveryResponseSchema, await waiting).resources.length, 1);
  source.current = undefined;
  await assert.rejects(fetch(sotwRequest(["default"])), { code: 14, details: "secret default is not there yet" });
  await assert.rejects(fetch(sotwRequest(["file-cert:other"])), {
    code: 5,
    details: "the agent has no secret file-cert:other",
  });
  await assert.rejects(fetch(sotwRequest([])), { code: 3, details: "the request names no secret" });
  await assert.rejects(fetch(Buffer.from([0x1a, 0x7f, 1])), { code: 3 });
  const words = lines.join("");
  assert.match(words, /Failed to get secret for proxy ".*" from secret cache: the agent has no secret file-cert:other/);
  assert.match(words, /Close connection\. Error: the request names no secret/);
  assert.equal(source.listeners.size, 0);
});

test("SDS answers a request that answers nothing again, and an acknowledgement not", async (t) => {
  const { source, open } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  const received = collect(stream);
  for (const count of [1, 2]) {
    stream.write(sotwRequest(["default"]));
    await eventually(`answer ${count}`, () => received.length === count);
  }
  stream.write(sotwRequest(["default"], { responseNonce: "2" }));
  stream.write(sotwRequest(["default", "ROOTCA"], { responseNonce: "2" }));
  await eventually("the other secret", () => received.length === 3);
  assert.match(received[2]?.secret ?? "", /^ROOTCA: /);
  stream.cancel();
});

test("SDS hurries the CA when it is asked for a certificate that is not there yet", async (t) => {
  const { source, open } = await setUp(t);
  const stream = open("StreamSecrets");
  const received = collect(stream);
  stream.write(sotwRequest(["default"]));
  await eventually("a word to the CA", () => source.hurries === 1);
  source.replace(certificate("chain 1"));
  await eventually("the certificate", () => received.length === 1);
  stream.write(sotwRequest(["default", "ROOTCA"], { responseNonce: "1" }));
  await eventually("its roots", () => received.length === 2);
  assert.equal(source.hurries, 1);
  stream.cancel();
});

test("SDS adds roots of the trust bundle to those of the CA, at once and each of them once", async (t) => {
  const { source, open, trustBundle } = await setUp(t);
  source.current = certificate("chain 1", pem("m"));
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["ROOTCA"]));
  const received = collect(stream);
  await eventually("the CA's", () => received.length === 1);
  trustBundle.update([`${pem("a")}\n${pem("m")}\n`, pem("z")]);
  trustBundle.update([pem("a"), pem("m"), pem("z")]);
  source.replace(certificate("chain 2", pem("n")));
  await eventually("all pushes", () => received.length === 3);
  assert.deepEqual(
    received.map(({ secret }) => secret),
    [["m"], ["a", "m", "z"], ["a", "m", "n", "z"]].map((roots) => `ROOTCA: ${roots.map(pem).sort().join("\n")}`),
  );
  assert.equal(source.renewals, 1);
  stream.cancel();
});

test("SDS hands private keys to hardware and names the list of revoked certificates, where asked", async (t) => {
  const keyProvider = { name: "cryptomb", pollDelayNanos: 2_000_000, fallback: true } as const;
  const { source, fetch } = await setUp(t, { keyProvider, revocationFile: "/crl.pem" });
  source.current = certificate("chain 1");
  const { resources } = fromBinary(DiscoveryResponseSchema, await fetch(sotwRequest(["default", "ROOTCA"])));
  const [own, roots] = resources.map((any) => anyUnpack(any, SecretSchema)?.type);
  const { privateKey, privateKeyProvider } = own?.case === "tlsCertificate" ? own.value : {};
  assert.equal(privateKey, undefined);
  assert.deepEqual([privateKeyProvider?.providerName, privateKeyProvider?.fallback], ["cryptomb", true]);
  const typed = privateKeyProvider?.configType.case === "typedConfig" ? privateKeyProvider.configType.value : undefined;
  assert.match(typed?.typeUrl ?? "", /cryptomb\.v3alpha\.CryptoMbPrivateKeyMethodConfig$/);
  const method = typed?.value ?? new Uint8Array();
  assert.equal(readText(readField(method, 1) ?? new Uint8Array(), 2), "key of chain 1");
  assert.deepEqual([...(readField(method, 2) ?? [])], [...new MessageWriter().varint(2, 2_000_000).finish()]);
  const crl = roots?.case === "validationContext" ? roots.value.crl?.specifier : undefined;
  assert.deepEqual(crl, { case: "filename", value: "/crl.pem" });
});

test("SDS survives garbage on its socket", async (t) => {
  const { source, path, open } = await setUp(t);
  source.current = certificate("chain 1");
  for (const garbage of [
    Buffer.from("GET / HTTP/1.1\r\n\r\n"),
    Buffer.alloc(100_000, 0xff),
    Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Buffer.alloc(1_000, 0x7f)]),
  ]) {
    const socket = connect(path);
    socket.on("error", () => undefined);
    socket.end(garbage);
    socket.resume();
    await once(socket, "close");
  }
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  assert.equal((await nextSotw(stream)).secrets.length, 1);
  stream.cancel();
});

test("SDS forgets a stream that ended", async (t) => {
  const { source, open } = await setUp(t);
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  await onceListening(source);
  stream.cancel();
  while (source.listeners.size > 0) await new Promise(setImmediate);
});

test("serveUnix() takes the place of a stale socket, and lets only its own user in", async (t) => {
  const folder = join(temporaryFolder(t), "private");
  const path = join(folder, "socket");
  mkdirSync(folder, { mode: 0o700 });
  writeFileSync(path, "stale");
  assert.equal(await isServed(path), false);
  const stop = new AbortController();
  t.after(() => stop.abort());
  await serveUnix(path, [], { signal: stop.signal });
  assert.equal(await isServed(path), true);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("serveUnix() says which socket it cannot serve on", async (t) => {
  const file = join(temporaryFolder(t), "file");
  writeFileSync(file, "");
  await assert.rejects(serveUnix(join(file, "socket"), [], { signal: new AbortController().signal }), {
    code: "SOCKET_NOT_SERVED",
    message: `Cannot serve on socket ${file}/socket`,
  });
});

async function onceListening(source: FakeSource): Promise<void> {
  while (source.listeners.size === 0) await new Promise(setImmediate);
}
