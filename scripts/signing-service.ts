/** Our certificate service over TLS by itself: it signs for whoever asks, as one workload. For figures, and for what the build tries out. */
import { Authority } from "#ca/authority/authority.ts";
import { selfSignedCa } from "#ca/keys/self-signed.ts";
import { signingBundle } from "#ca/keys/signing-bundle.ts";
import { certificateService } from "#ca/service/certificate-service.ts";
import { ServingCertificate } from "#ca/serving/serving-certificate.ts";
import { GrpcListener } from "#lib/grpc/grpc-listener.ts";
import type { Methods } from "#lib/grpc/server-call.ts";
import { SILENT } from "#lib/log/log.ts";

const DAY_MS = 86_400_000;

export interface SigningServiceOptions {
  /** Whom it takes all callers for, in the namespace `default`. */
  readonly serviceAccount: string;
  /** Its own, in its certificate. */
  readonly name: string;
  /** What it serves beside. */
  readonly others?: Methods;
}

export interface SigningService {
  /** `localhost:port`. */
  readonly address: string;
  readonly rootPem: string;
}

/** Starts it on a free port, until the process ends. */
export async function startSigningService(options: SigningServiceOptions): Promise<SigningService> {
  const { serviceAccount, name, others = {} } = options;
  const now = Date.now();
  const files = await selfSignedCa({
    trustDomain: "cluster.local",
    lifetimeMs: DAY_MS,
    keyKind: { rsaBits: 2048 },
    now,
  });
  const lifetimes = { defaultTtlMs: DAY_MS, maxTtlMs: DAY_MS, now: Date.now };
  const authority = new Authority(signingBundle(files, now), lifetimes);
  const identity = `spiffe://cluster.local/ns/default/sa/${serviceAccount}`;
  const signing = certificateService({
    signer: authority,
    authenticate: async () => ({ caller: { identity, namespace: "default", serviceAccount, provedBy: "jwt" } }),
    count: () => undefined,
    log: SILENT,
    allow: () => true,
  });
  const listener = new GrpcListener({
    flag: "address",
    address: { host: "127.0.0.1", port: 0 },
    services: [signing, others],
    identity: await ServingCertificate.issue({ authority, names: [name], log: SILENT, now: Date.now }),
    keepalive: { intervalMs: 30_000, timeoutMs: 10_000, maxConnectionAgeMs: undefined },
  });
  return { address: (await listener.start()).replace("127.0.0.1", "localhost"), rootPem: files.rootPem };
}
