import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdirSync, statSync, writeFileSync } from "node:fs";
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
import { createLogger } from "#lib/log.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { isServed, RAW, serveUnix } from "../unix-server.ts";
import type { WorkloadCertificate } from "./certificate.ts";
import { workloadSecrets } from "./secret-source.ts";
import { secretDiscoveryService } from "./service.ts";
import type { CertificateChange } from "./workload-identity.ts";

type Context = { after(fn: () => void): void };

const certificate = (chain: string, roots = "roots"): WorkloadCertificate => ({
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

async function setUp(t: Context) {
  const path = join(temporaryFolder(t), "uds", "socket");
  const source = new FakeSource();
  const lines: string[] = [];
  const stop = new AbortController();
  await serveUnix(
    path,
    [secretDiscoveryService([workloadSecrets(source)], createLogger({ write: (line) => lines.push(line) }))],
    stop.signal,
  );
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
  return { path, source, lines, open };
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

test("SDS sends certificate and roots over a state-of-the-world stream, each under its name", async (t) => {
  const { source, open } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  const { response, secrets } = await nextSotw(stream);
  assert.equal(response.typeUrl, "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret");
  assert.deepEqual(secrets.map(text), ["default: chain 1, key of chain 1"]);
  stream.write(sotwRequest(["default", "ROOTCA"], { responseNonce: response.nonce }));
  assert.deepEqual((await nextSotw(stream)).secrets.map(text), ["ROOTCA: roots"]);
  stream.cancel();
});

test("SDS sends a secret when it is there, if it was asked for before", async (t) => {
  const { source, open } = await setUp(t);
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["ROOTCA"]));
  const waiting = nextSotw(stream);
  await onceListening(source);
  source.replace(certificate("chain 1"));
  assert.deepEqual((await waiting).secrets.map(text), ["ROOTCA: roots"]);
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
  source.replace(certificate("chain 3", "new roots"));
  await eventually("all pushes", () => received.length === 5);
  assert.deepEqual(
    received.map(({ secret }) => secret),
    [
      "default: chain 1, key of chain 1",
      "ROOTCA: roots",
      "default: chain 2, key of chain 2",
      "default: chain 3, key of chain 3",
      "ROOTCA: new roots",
    ],
  );
  assert.equal(new Set(received.map(({ version }) => version)).size, 5);
  stream.cancel();
});

test("SDS does not answer an acknowledgement, and logs a refusal", async (t) => {
  const { source, open, lines } = await setUp(t);
  source.current = certificate("chain 1");
  const stream = open("StreamSecrets");
  stream.write(sotwRequest(["default"]));
  const { response } = await nextSotw(stream);
  stream.write(sotwRequest(["default"], { responseNonce: response.nonce }));
  stream.write(sotwRequest(["default"], { responseNonce: response.nonce, errorDetail: { message: "bad key" } }));
  // The next thing that comes is the push, not an answer to one of these.
  stream.write(sotwRequest(["default", "ROOTCA"], { responseNonce: response.nonce }));
  assert.deepEqual((await nextSotw(stream)).secrets.map(text), ["ROOTCA: roots"]);
  assert.match(lines.join(""), /warn\tEnvoy refused default: bad key/);
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
    [sotwRequest(["other"]), 5],
    [Buffer.from([0x1a, 0x7f, 1]), 3],
  ] as const) {
    const stream = open("StreamSecrets");
    stream.write(request);
    stream.resume();
    const [error] = await once(stream, "error");
    assert.equal(error.code, code);
  }
  assert.match(lines.join(""), /asked for a secret that the agent does not have: other/);
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
  await serveUnix(path, [], stop.signal);
  assert.equal(await isServed(path), true);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("serveUnix() says which socket it cannot serve on", async (t) => {
  const file = join(temporaryFolder(t), "file");
  writeFileSync(file, "");
  await assert.rejects(serveUnix(join(file, "socket"), [], new AbortController().signal), {
    code: "SOCKET_NOT_SERVED",
    message: `Cannot serve on socket ${file}/socket`,
  });
});

async function onceListening(source: FakeSource): Promise<void> {
  while (source.listeners.size === 0) await new Promise(setImmediate);
}
