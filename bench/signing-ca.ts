/** A certificate authority by itself, as a process: our service over TLS. Prints its address, then its root in PEM. */
import { Authority } from "#ca/authority.ts";
import { certificateService } from "#ca/certificate-service.ts";
import { selfSignedCa } from "#ca/self-signed.ts";
import { ServingCertificate } from "#ca/serving-certificate.ts";
import { signingBundle } from "#ca/signing-bundle.ts";
import { SILENT } from "#lib/log.ts";
import { GrpcListener } from "#lib/net/grpc-listener.ts";

const DAY_MS = 86_400_000;
const files = await selfSignedCa({
  trustDomain: "cluster.local",
  lifetimeMs: DAY_MS,
  keyKind: { rsaBits: 2048 },
  now: Date.now(),
});
const authority = new Authority(signingBundle(files, Date.now()), {
  defaultTtlMs: DAY_MS,
  maxTtlMs: DAY_MS,
  now: Date.now,
});
const caller = {
  identity: "spiffe://cluster.local/ns/default/sa/bench",
  namespace: "default",
  serviceAccount: "bench",
  provedBy: "jwt",
} as const;
const listener = new GrpcListener({
  flag: "address",
  address: { host: "127.0.0.1", port: 0 },
  services: [
    certificateService({
      signer: authority,
      authenticate: async () => ({ caller }),
      count: () => undefined,
      log: SILENT,
      allow: () => true,
    }),
  ],
  identity: await ServingCertificate.issue({ authority, names: ["localhost"], log: SILENT, now: Date.now }),
  keepalive: { intervalMs: 30_000, timeoutMs: 10_000, maxConnectionAgeMs: undefined },
});
const address = (await listener.start()).replace("127.0.0.1", "localhost");
console.log(`${address}\n${files.rootPem}`);
