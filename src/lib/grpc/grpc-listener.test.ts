import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { before, describe, test } from "node:test";
import { type ChannelCredentials, Client, credentials, Metadata } from "@grpc/grpc-js";
import type { ServerIdentity, ServerIdentitySource } from "../net/server-identity.ts";
import { type Issuer, issueLeaf, issueRoot } from "../pki/issue.ts";
import { callCredentials } from "./call-credentials.ts";
import { GrpcListener, type GrpcListenerOptions } from "./grpc-listener.ts";
import { unaryMethod } from "./unary-method.ts";

const PATH = "/test.Echo/WhoAmI";
const identity = (bytes: Buffer) => bytes;
const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 3_600_000) };

/** Answers with what it saw of the caller. */
const echo = unaryMethod(async (_, call) => {
  const { authorization, certificate } = callCredentials(call);
  return Buffer.from(JSON.stringify({ authorization, certificate: certificate !== undefined }));
});

const OPTIONS: GrpcListenerOptions = {
  flag: "--grpcAddr",
  address: { host: "127.0.0.1", port: 0 },
  services: [{ [PATH]: echo }],
  keepalive: { intervalMs: 30_000, timeoutMs: 10_000, maxConnectionAgeMs: undefined },
};

function ask(address: string, channel: ChannelCredentials): Promise<{ authorization?: string; certificate: boolean }> {
  const client = new Client(`localhost:${address.split(":").at(-1)}`, channel);
  const metadata = new Metadata();
  metadata.set("authorization", "Bearer x");
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(PATH, identity, identity, Buffer.alloc(0), metadata, (error, value) => {
      client.close();
      if (error) reject(error);
      else resolve(JSON.parse(value?.toString() ?? ""));
    });
  });
}

async function leaf(issuer: Issuer, ...subjectAltNames: string[]): Promise<{ certificate: Buffer; key: Buffer }> {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  const certificate = await issueLeaf({ issuer, publicKey, subjectAltNames, ...validity });
  const key = privateKey.export({ format: "pem", type: "pkcs8" });
  return { certificate: Buffer.from(certificate), key: Buffer.from(key) };
}

test("GrpcListener serves plain text on a free port and stops", async () => {
  const listener = new GrpcListener(OPTIONS);
  const address = await listener.start();
  assert.match(address, /^127\.0\.0\.1:[1-9]\d+$/);
  assert.deepEqual(await ask(address, credentials.createInsecure()), { authorization: "Bearer x", certificate: false });
  await listener.stop(1000);
  await assert.rejects(ask(address, credentials.createInsecure()), /ECONNREFUSED/);
});

test("GrpcListener names flag, address and reason when the port is in use", async () => {
  const first = new GrpcListener(OPTIONS);
  const port = Number((await first.start()).split(":")[1]);
  const second = new GrpcListener({ ...OPTIONS, address: { host: "127.0.0.1", port } });
  await assert.rejects(second.start(), {
    code: "LISTEN_FAILED",
    message: `cannot listen on 127.0.0.1:${port} (--grpcAddr): the port is in use by another process`,
  });
  await first.stop(1000);
});

describe("GrpcListener with TLS", () => {
  let mesh: Issuer;
  let stranger: Issuer;
  let current: ServerIdentity;
  const listeners = new Set<(identity: ServerIdentity) => void>();
  const source: ServerIdentitySource = {
    current: () => current,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };

  before(async () => {
    mesh = await issueRoot({ organization: "mesh", keyKind: "P-256", ...validity });
    stranger = await issueRoot({ organization: "stranger", keyKind: "P-256", ...validity });
    current = await serverIdentity(mesh);
  });

  async function serverIdentity(issuer: Issuer): Promise<ServerIdentity> {
    const { certificate, key } = await leaf(issuer, "localhost");
    return { certificates: String(certificate), key: String(key), clientRoots: mesh.certificate.toString() };
  }

  async function withServer(use: (address: string) => Promise<void>): Promise<void> {
    const listener = new GrpcListener({ ...OPTIONS, identity: source });
    const address = await listener.start();
    try {
      await use(address);
    } finally {
      await listener.stop(1000);
    }
  }

  const rootOf = (issuer: Issuer) => Buffer.from(issuer.certificate.toString());

  test("serves clients without a certificate", () =>
    withServer(async (address) => {
      assert.equal((await ask(address, credentials.createSsl(rootOf(mesh)))).certificate, false);
    }));

  test("shows the certificate of a client of the mesh", () =>
    withServer(async (address) => {
      const { key, certificate } = await leaf(mesh, "spiffe://a/ns/b/sa/c");
      assert.equal((await ask(address, credentials.createSsl(rootOf(mesh), key, certificate))).certificate, true);
    }));

  test("does not show the certificate of a stranger's CA", () =>
    withServer(async (address) => {
      const { key, certificate } = await leaf(stranger, "spiffe://a/ns/b/sa/c");
      assert.equal((await ask(address, credentials.createSsl(rootOf(mesh), key, certificate))).certificate, false);
    }));

  test("shows new clients a renewed certificate", () =>
    withServer(async (address) => {
      const before = current;
      current = await serverIdentity(stranger);
      for (const tell of listeners) tell(current);
      await ask(address, credentials.createSsl(rootOf(stranger)));
      current = before;
    }));

  test("forgets its source after it stopped", async () => {
    await withServer(async () => assert.notEqual(listeners.size, 0));
    assert.equal(listeners.size, 0);
  });
});
