/** A control plane for tests of the agent: signs certificates, records requests, and sends what a test tells it to. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PeerCertificate } from "node:tls";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  experimental,
  type Metadata,
  Server,
  type ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type sendUnaryData,
  type status,
} from "@grpc/grpc-js";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "#gen/istio/v1/auth/ca_pb.ts";
import { requestedPublicKey } from "#lib/pki/certificate-request.ts";
import { type Issuer, issueLeaf, issueRoot } from "#lib/pki/issue.ts";

export type Stream = ServerDuplexStream<Buffer, Buffer>;

export interface FakeControlPlane {
  /** `localhost:PORT` */
  readonly address: string;
  readonly root: Issuer;
  readonly rootPem: string;
  readonly signings: Signing[];
  /** Announces the end of all connections, as at their maximum age, and ends them after a time. */
  drain(graceMs: number): void;
  /** Accepts no further connections. */
  stopListening(): void;
  close(): void;
}

export interface Signing {
  readonly csr: string;
  readonly ttlSeconds: number;
  readonly metadata: Metadata;
  /** What the caller showed over TLS. */
  readonly clientCertificate: PeerCertificate | undefined;
  /** How long the caller waits. */
  readonly waitsMs: number;
}

export interface FakeOptions {
  /** Signs no sooner than this. */
  readonly delaySigning?: () => Promise<void>;
  /** Answers with these bytes instead of a certificate. */
  readonly answerWith?: () => Buffer | undefined;
  /** Called with each stream; the default leaves it alone. */
  readonly onStream?: (stream: Stream, kind: "delta" | "sotw") => void;
  /** Refuses to sign, with this code and text. */
  readonly refuseSigning?: () => { readonly code: status; readonly details: string } | undefined;
  readonly identity?: string;
  /** Another port than a free one, to come back after an end. */
  readonly port?: number;
  readonly root?: Issuer;
}

const RAW = {
  requestSerialize: (bytes: Buffer) => bytes,
  requestDeserialize: (bytes: Buffer) => bytes,
  responseSerialize: (bytes: Buffer) => bytes,
  responseDeserialize: (bytes: Buffer) => bytes,
};
const ADS = "/envoy.service.discovery.v3.AggregatedDiscoveryService";
const HOUR_MS = 3_600_000;
/** Much longer than anything takes: who waits for what never comes has found a fault, a slow machine is none. */
const PATIENCE_MS = 60_000;

export function testRoot(organization = "test"): Promise<Issuer> {
  const now = Date.now();
  return issueRoot({
    organization,
    keyKind: "P-256",
    notBefore: new Date(now - HOUR_MS),
    notAfter: new Date(now + HOUR_MS),
  });
}

/** A chain, leaf first and root last, for the key of a request. */
export async function signedChain(csr: string, root: Issuer, identity: string): Promise<readonly string[]> {
  const publicKey = await requestedPublicKey(csr);
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + HOUR_MS) };
  return [
    await issueLeaf({ issuer: root, publicKey, subjectAltNames: [identity], ...validity }),
    root.certificate.toString(),
  ];
}

export async function startFakeControlPlane(options: FakeOptions = {}): Promise<FakeControlPlane> {
  const root = options.root ?? (await testRoot());
  const signings: FakeControlPlane["signings"] = [];
  const server = new Server({ "grpc.max_receive_message_length": -1, "grpc.max_send_message_length": -1 });
  const stream = (name: string) => ({ path: `${ADS}/${name}`, requestStream: true, responseStream: true, ...RAW });
  server.addService(
    {
      DeltaAggregatedResources: stream("DeltaAggregatedResources"),
      StreamAggregatedResources: stream("StreamAggregatedResources"),
    },
    {
      DeltaAggregatedResources: (call: Stream) => options.onStream?.(call, "delta"),
      StreamAggregatedResources: (call: Stream) => options.onStream?.(call, "sotw"),
    },
  );
  const path = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
  server.addService(
    { CreateCertificate: { path, requestStream: false, responseStream: false, ...RAW } },
    {
      CreateCertificate: (call: ServerUnaryCall<Buffer, Buffer>, answer: sendUnaryData<Buffer>) => {
        const refused = options.refuseSigning?.();
        if (refused !== undefined) {
          answer(refused);
          return;
        }
        void signingAnswer(call, { ...options, root, signings }).then((bytes) => answer(null, bytes));
      },
    },
  );
  const credentials = await serverCredentials(root);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${options.port ?? 0}`, credentials, (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  return {
    address: `localhost:${port}`,
    root,
    rootPem: root.certificate.toString(),
    signings,
    stopListening: () => server.unbind(`127.0.0.1:${port}`),
    drain: (graceMs) => server.drain(`127.0.0.1:${port}`, graceMs),
    close: () => server.forceShutdown(),
  };
}

async function signingAnswer(
  call: ServerUnaryCall<Buffer, Buffer>,
  options: FakeOptions & { readonly root: Issuer; readonly signings: Signing[] },
): Promise<Buffer> {
  const waitsMs = Number(call.getDeadline()) - Date.now();
  await options.delaySigning?.();
  const garbage = options.answerWith?.();
  if (garbage !== undefined) return garbage;
  const { csr, validityDuration } = fromBinary(IstioCertificateRequestSchema, call.request);
  const { sslPeerCertificate: clientCertificate } = call.getAuthContext();
  const ttlSeconds = Number(validityDuration);
  options.signings.push({ csr, ttlSeconds, metadata: call.metadata, clientCertificate, waitsMs });
  const identity = options.identity ?? "spiffe://cluster.local/ns/default/sa/httpbin";
  const certChain = [...(await signedChain(csr, options.root, identity))];
  return Buffer.from(toBinary(IstioCertificateResponseSchema, create(IstioCertificateResponseSchema, { certChain })));
}

async function serverCredentials(root: Issuer): Promise<ServerCredentials> {
  const { generateKeyPairSync } = await import("node:crypto");
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const certificate = await issueLeaf({
    issuer: root,
    publicKey,
    subjectAltNames: ["istiod.istio-system.svc"],
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + HOUR_MS),
  });
  const keyPem = Buffer.from(privateKey.export({ type: "pkcs8", format: "pem" }));
  const provider: Provider = {
    addCaCertificateListener: (listener) =>
      queueMicrotask(() => listener({ caCertificate: Buffer.from(root.certificate.toString()) })),
    addIdentityCertificateListener: (listener) =>
      queueMicrotask(() => listener({ certificate: Buffer.from(certificate), privateKey: keyPem })),
    removeCaCertificateListener: () => undefined,
    removeIdentityCertificateListener: () => undefined,
  };
  // A client certificate is asked for and not insisted on, as on port 15012.
  return experimental.createCertificateProviderServerCredentials(provider, provider, false);
}

type Provider = Parameters<typeof experimental.createCertificateProviderServerCredentials>[0];

/** A folder that is removed when the test ends. */
export function temporaryFolder(t: { after(fn: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "agent-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Resolves when the condition holds; rejects when it does not in time. Looks again after each turn of the event loop. */
export async function eventually(
  what: string | (() => string),
  holds: () => boolean | Promise<boolean>,
  timeoutMs = PATIENCE_MS,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await holds())) {
    if (performance.now() > deadline) {
      throw new Error(`not in ${timeoutMs} ms: ${typeof what === "string" ? what : what()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
