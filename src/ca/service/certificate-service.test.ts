import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync, X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { create, fromBinary, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";
import type { Authentication, Credentials } from "#authn/authenticator.ts";
import { clientCertificateAuthenticator } from "#authn/client-certificate.ts";
import { IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "#gen/istio/v1/auth/ca_pb.ts";
import { GrpcListener } from "#lib/grpc/grpc-listener.ts";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { Authority } from "../authority/authority.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { type CaFiles, signingBundle } from "../keys/signing-bundle.ts";
import { ServingCertificate } from "../serving/serving-certificate.ts";
import { CREATE_CERTIFICATE, certificateService } from "./certificate-service.ts";
import type { NodeAgents } from "./node-agents.ts";

const DAY = 86_400_000;
const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";
const TOKEN = "Bearer good";
const NODE_TOKEN = "Bearer of a node";
const NODE_AGENTS: NodeAgents = {
  trustedAccounts: ["istio-system/ztunnel"],
  pods: {
    pod: async () => ({ uid: "1", serviceAccount: "ztunnel", node: "node" }),
    runs: async ({ serviceAccount }) => serviceAccount === "httpbin",
  },
};

/** Stands for the chain of authenticators, which has tests of its own: certificates first, then one token. */
async function authenticate({ authorization, certificate }: Credentials): Promise<Authentication> {
  const proved = await clientCertificateAuthenticator(() => ["cluster.local"])({ authorization, certificate });
  if (proved !== undefined) return proved;
  if (authorization === NODE_TOKEN) {
    const identity = "spiffe://cluster.local/ns/istio-system/sa/ztunnel";
    const account = { namespace: "istio-system", serviceAccount: "ztunnel" };
    return { caller: { identity, ...account, provedBy: "jwt", pod: "ztunnel-1", podUid: "1" } };
  }
  if (authorization !== TOKEN) return { refused: "the token expired at noon" };
  return { caller: { identity: IDENTITY, namespace: "default", serviceAccount: "httpbin", provedBy: "jwt" } };
}

describe("certificateService() over TLS", () => {
  const folder = mkdtempSync(join(tmpdir(), "certificate-service-"));
  const lines: string[] = [];
  const counted: string[] = [];
  let files: CaFiles;
  let listener: GrpcListener;
  let target: string;
  let isAllowed = true;

  before(async () => {
    files = await selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: DAY, keyKind: "P-256", now: Date.now() });
    const options = { defaultTtlMs: DAY, maxTtlMs: DAY, now: Date.now };
    const authority = new Authority(signingBundle(files, Date.now()), options);
    const log = createLogger({ write: (line) => lines.push(line) });
    const count = (counter: string) => counted.push(counter);
    listener = new GrpcListener({
      flag: "--secureGRPCAddr",
      address: { host: "127.0.0.1", port: 0 },
      services: [
        certificateService({
          signer: authority,
          authenticate,
          count,
          log,
          allow: () => isAllowed,
          nodeAgents: NODE_AGENTS,
        }),
      ],
      identity: await ServingCertificate.issue({ authority, names: ["localhost"], log: SILENT, now: Date.now }),
      keepalive: { intervalMs: 30_000, timeoutMs: 10_000, maxConnectionAgeMs: undefined },
    });
    target = (await listener.start()).replace("127.0.0.1", "localhost");
  });
  after(async () => {
    await listener.stop(1000);
    rmSync(folder, { recursive: true });
  });

  interface Asked {
    readonly csr: string;
    readonly authorization?: string;
    readonly metadata?: JsonObject;
    /** Shown as the client's. */
    readonly pair?: { readonly key: string; readonly chain: string };
  }

  function ask({ csr, authorization = TOKEN, metadata, pair }: Asked): Promise<readonly string[]> {
    lines.length = 0;
    counted.length = 0;
    const shown = pair === undefined ? [] : [Buffer.from(pair.key), Buffer.from(pair.chain)];
    const client = new Client(target, credentials.createSsl(Buffer.from(files.rootPem), ...shown));
    const headers = new Metadata();
    headers.set("authorization", authorization);
    const request = create(IstioCertificateRequestSchema, {
      csr,
      validityDuration: 3600n,
      ...(metadata === undefined ? {} : { metadata }),
    });
    return new Promise((resolve, reject) => {
      client.makeUnaryRequest(
        CREATE_CERTIFICATE,
        (message: typeof request) => Buffer.from(toBinary(IstioCertificateRequestSchema, message)),
        (bytes: Buffer) => fromBinary(IstioCertificateResponseSchema, bytes),
        request,
        headers,
        (error, response) => {
          client.close();
          if (error) reject(error);
          else resolve(response?.certChain ?? []);
        },
      );
    });
  }

  function csr(identity: string): string {
    return certificateRequest({ identity, ...generateKeyPairSync("rsa", { modulusLength: 2048 }) });
  }

  test("issues what openssl verifies, with the token's identity although the CSR names a foreign one", async () => {
    const [leaf = "", root = ""] = await ask({ csr: csr("spiffe://cluster.local/ns/kube-system/sa/admin") });
    writeFileSync(join(folder, "leaf.pem"), leaf);
    writeFileSync(join(folder, "root.pem"), root);
    const args = ["verify", "-x509_strict", "-CAfile", join(folder, "root.pem"), join(folder, "leaf.pem")];
    assert.match(execFileSync("openssl", args, { encoding: "utf8" }), /leaf\.pem: OK/);
    assert.equal(new X509Certificate(leaf).subjectAltName, `URI:${IDENTITY}`);
    assert.deepEqual(counted, ["citadel_server_csr_count", "citadel_server_success_cert_issuance_count"]);
    assert.equal(lines.length, 1);
    assert.match(
      lines[0] ?? "",
      new RegExp(
        `info\tcertificate issued\tpeer=.* identity=${IDENTITY} provedBy=jwt serial=\\w+ expires=\\S+ ttlSeconds=3600$`,
        "m",
      ),
    );
  });

  test("gives nothing else of what a CSR asks for: no right to sign, no names, no usages, no subject", async () => {
    const wishes = [
      "basicConstraints=critical,CA:TRUE",
      "keyUsage=keyCertSign,cRLSign",
      "extendedKeyUsage=codeSigning",
    ];
    const names = "subjectAltName=DNS:istiod.istio-system.svc,IP:127.0.0.1,URI:spiffe://cluster.local/ns/a/sa/b";
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", join(folder, "wish.key")];
    const asked = [...wishes, names].flatMap((extension) => ["-addext", extension]);
    const wish = execFileSync("openssl", ["req", ...key, "-subj", "/O=root/CN=admin", ...asked], { stdio: "pipe" });
    const leaf = new X509Certificate((await ask({ csr: String(wish) }))[0] ?? "");
    assert.deepEqual([leaf.ca, leaf.subjectAltName, leaf.subject ?? ""], [false, `URI:${IDENTITY}`, ""]);
    // Of servers and of clients.
    assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  });

  test("renews by the former certificate alone, for the same identity", async () => {
    const keys = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const [chain = ""] = await ask({ csr: certificateRequest({ identity: IDENTITY, ...keys }) });
    const key = keys.privateKey.export({ format: "pem", type: "pkcs8" }).toString();
    const foreign = csr("spiffe://cluster.local/ns/kube-system/sa/admin");
    const [renewed = ""] = await ask({ csr: foreign, authorization: "", pair: { key, chain } });
    assert.equal(new X509Certificate(renewed).subjectAltName, `URI:${IDENTITY}`);
    assert.match(lines.join(""), /certificate issued.* provedBy=certificate /);
  });

  test("does not believe a certificate of another CA with the same names", async () => {
    const now = Date.now();
    const other = await selfSignedCa({ trustDomain: "cluster.local", lifetimeMs: DAY, keyKind: "P-256", now });
    const authority = new Authority(signingBundle(other, now), { defaultTtlMs: DAY, maxTtlMs: DAY, now: () => now });
    const keys = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    const csrPem = certificateRequest({ identity: IDENTITY, ...keys });
    const [chain = ""] = await authority.sign({ csrPem, identity: IDENTITY, ttlSeconds: 0 });
    const key = keys.privateKey.export({ format: "pem", type: "pkcs8" }).toString();
    await assert.rejects(ask({ csr: csrPem, authorization: "", pair: { key, chain } }));
    assert.deepEqual(
      counted.filter((name) => name.includes("success")),
      [],
    );
  });

  test("refuses a caller that is not believed, and says why to caller and log", async () => {
    const refused = ask({ csr: csr(IDENTITY), authorization: "Bearer bad" });
    await assert.rejects(refused, { code: status.UNAUTHENTICATED, details: "the token expired at noon" });
    assert.deepEqual(counted, ["citadel_server_csr_count", "citadel_server_authentication_failure_count"]);
    assert.match(lines.join(""), /^[^\n]*warn\tcertificate refused\tpeer=\S+ reason=the token expired at noon\n$/);
  });

  test("refuses garbage in place of a CSR in one line", async () => {
    await assert.rejects(ask({ csr: "garbage\n\nmore" }), {
      code: status.INVALID_ARGUMENT,
      details: /not one PEM block/,
    });
    assert.deepEqual(counted, ["citadel_server_csr_count", "citadel_server_csr_parsing_err_count"]);
    assert.equal(lines.join("").split("\n").length, 2);
  });

  test("refuses a huge CSR", async () => {
    await assert.rejects(ask({ csr: "x".repeat(1_000_000) }), {
      code: status.RESOURCE_EXHAUSTED,
      details: /larger than max \(\d+ vs 65536\)/,
    });
  });

  test("signs for a workload when the agent of its node asks, and says for whom", async () => {
    const asked = (wanted: string) =>
      ask({ csr: csr(wanted), authorization: NODE_TOKEN, metadata: { ImpersonatedIdentity: wanted } });
    const [leaf = ""] = await asked(IDENTITY);
    assert.equal(new X509Certificate(leaf).subjectAltName, `URI:${IDENTITY}`);
    assert.match(lines.join(""), new RegExp(`identity=\\S+/sa/ztunnel provedBy=jwt actingFor=${IDENTITY}`));
    await assert.rejects(asked("spiffe://cluster.local/ns/default/sa/other"), { code: status.UNAUTHENTICATED });
  });

  test("refuses to act for another identity as istiod does, with the reason in the log alone", async () => {
    const metadata = { ImpersonatedIdentity: "spiffe://cluster.local/ns/a/sa/b" };
    await assert.rejects(ask({ csr: csr(IDENTITY), metadata }), {
      code: status.UNAUTHENTICATED,
      details: "request impersonation authentication failure",
    });
    assert.deepEqual(counted, ["citadel_server_csr_count", "citadel_server_authentication_failure_count"]);
    assert.match(
      lines.join(""),
      /certificate refused.*not trusted to act for "spiffe:\/\/cluster\.local\/ns\/a\/sa\/b"/,
    );
  });

  for (const value of ["", 7, ["spiffe://cluster.local/ns/a/sa/b"], { a: 1 }]) {
    test(`issues for the caller when the identity to act for is ${JSON.stringify(value)}`, async () => {
      const [leaf = ""] = await ask({ csr: csr(IDENTITY), metadata: { ImpersonatedIdentity: value } });
      assert.equal(new X509Certificate(leaf).subjectAltName, `URI:${IDENTITY}`);
    });
  }

  test("refuses an identity that asks too often, before it reads the CSR", async () => {
    isAllowed = false;
    try {
      await assert.rejects(ask({ csr: "garbage" }), { code: status.RESOURCE_EXHAUSTED, details: /too often/ });
    } finally {
      isAllowed = true;
    }
    assert.match(lines.join(""), new RegExp(`certificate refused\tpeer=\\S+ identity=${IDENTITY} .*too often`));
  });

  test("says nothing secret in the log", async () => {
    await ask({ csr: csr(IDENTITY) });
    const issued = lines.join("");
    await assert.rejects(ask({ csr: csr(IDENTITY), authorization: "Bearer s3cret" }));
    assert.match(issued + lines.join(""), /certificate issued.*\n.*certificate refused/);
    assert.doesNotMatch(issued + lines.join(""), /s3cret|Bearer|PRIVATE|BEGIN/);
  });
});
