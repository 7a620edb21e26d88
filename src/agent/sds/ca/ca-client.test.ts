import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { createLogger } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import {
  type FakeControlPlane,
  type FakeOptions,
  signedChain,
  startFakeControlPlane,
  temporaryFolder,
  testRoot,
} from "../../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../../test/support/free-ports.ts";
import type { ControlPlaneOptions, ControlPlaneServer } from "../../control-plane.ts";
import { agentMetrics } from "../../metrics.ts";
import { fileToken } from "../../sts/token-source.ts";
import { workloadCertificate } from "../certificate.ts";
import { generateKey } from "../key.ts";
import { citadelClient } from "./ca-client.ts";

const IDENTITY = "spiffe://cluster.local/ns/default/sa/httpbin";
const forever = new AbortController().signal;

type Context = { after(fn: () => void): void };

async function setUp(t: Context, options: FakeOptions = {}) {
  const plane = await startFakeControlPlane(options);
  t.after(() => plane.close());
  const folder = temporaryFolder(t);
  const [rootFile, tokenFile] = [join(folder, "root.pem"), join(folder, "token")];
  writeFileSync(rootFile, plane.rootPem);
  writeFileSync(tokenFile, "first-token\n");
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const metrics = agentMetrics();
  const client = (more: Partial<ControlPlaneOptions> = {}, timeoutMs: number | null = 5_000) =>
    citadelClient(
      {
        upstream: { ...optionsOf(plane, rootFile), fetchToken: fileToken(tokenFile, log), ...more },
        log,
        retries: metrics.signRetries,
        ...(timeoutMs !== null && { timeoutMs }),
        firstPauseMs: 1,
      },
      "signer",
    );
  return { plane, client, rootFile, tokenFile, lines, metrics };
}

function optionsOf({ address }: FakeControlPlane, rootCertificate: string): ControlPlaneServer {
  return { address, rootCertificate, subjectAltName: "", headers: { clusterid: "Kubernetes", EXTRA: "x" } };
}

async function request() {
  const key = await generateKey({ curve: undefined, rsaBits: 2048, pkcs8: false });
  return {
    key,
    sign: { csr: certificateRequest({ identity: IDENTITY, ...key }), ttlSeconds: 86_400 },
  };
}

test("citadelClient() gets a chain for its key, with token, cluster and lifetime in the request", async (t) => {
  const { plane, client, tokenFile } = await setUp(t);
  const { key, sign } = await request();
  assert.match(
    workloadCertificate(await client()(sign, forever), { key, identity: IDENTITY, now: 0 }).chain,
    /BEGIN CERTIFICATE/,
  );
  writeFileSync(tokenFile, "second-token");
  await client()(sign, forever);
  assert.deepEqual(
    plane.signings.map(({ metadata }) => metadata.get("authorization")[0]),
    ["Bearer first-token", "Bearer second-token"],
  );
  assert.deepEqual(plane.signings[0]?.metadata.get("clusterid"), ["Kubernetes"]);
  assert.deepEqual(plane.signings[0]?.metadata.get("extra"), ["x"]);
  assert.equal(plane.signings[0]?.ttlSeconds, 86_400);
});

test("citadelClient() sends each header once, however it is written: a token counts before a configured one", async (t) => {
  const { plane, client, tokenFile } = await setUp(t);
  const { sign } = await request();
  const headers = { Authorization: "Basic x", TE: "gzip", clusterid: "Kubernetes", ClusterID: "other" };
  await client({ headers })(sign, forever);
  rmSync(tokenFile);
  await client({ headers })(sign, forever);
  assert.deepEqual(
    plane.signings.map(({ metadata }) => [metadata.get("authorization"), metadata.get("clusterid")]),
    [
      [["Bearer first-token"], ["other"]],
      [["Basic x"], ["other"]],
    ],
  );
});

test("citadelClient() sends the bytes of a header whose name ends with -bin, as gRPC encodes them", async (t) => {
  const { plane, client } = await setUp(t);
  const { sign } = await request();
  await client({ headers: { "X-Data-Bin": "AAEC", "x-more-bin": "ü\n", "x-bin-no": "AAEC" } })(sign, forever);
  const { metadata } = plane.signings[0] ?? {};
  assert.deepEqual(
    ["x-data-bin", "x-more-bin", "x-bin-no"].map((name) => metadata?.get(name)),
    [[Buffer.from("AAEC")], [Buffer.from("ü\n")], ["AAEC"]],
  );
});

test("citadelClient() says that the token was refused", async (t) => {
  const refuseSigning = () => ({ code: status.UNAUTHENTICATED, details: "token expired" });
  const { client } = await setUp(t, { refuseSigning });
  const { sign } = await request();
  await assert.rejects(client()(sign, forever), {
    code: "CA_FAILED",
    message: /^Cannot get a certificate from localhost:\d+: the service account token was refused \(token expired\)$/,
  });
});

test("citadelClient() goes on without a token and says so", async (t) => {
  const { plane, client, tokenFile, lines } = await setUp(t);
  const { sign } = await request();
  rmSync(tokenFile);
  await client()(sign, forever);
  assert.deepEqual(plane.signings[0]?.metadata.get("authorization"), []);
  assert.match(lines.join(""), /There is no service account token in .*: ENOENT/);
});

test("citadelClient() does not talk to a server of another root, or of another name", async (t) => {
  const { plane, client, rootFile } = await setUp(t);
  const { sign } = await request();
  await assert.rejects(client({ subjectAltName: "other.example" })(sign, forever), /it cannot be reached/);
  writeFileSync(rootFile, (await testRoot("other")).certificate.toString());
  await assert.rejects(client()(sign, forever), /it cannot be reached/);
  assert.equal(plane.signings.length, 0);
});

test("citadelClient() finds its root behind what is no certificate", async (t) => {
  const { plane, client, rootFile } = await setUp(t);
  const { sign } = await request();
  // The form of a certificate, and an empty one.
  const broken = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
  writeFileSync(rootFile, `${broken}${plane.rootPem}`);
  await client()(sign, forever);
  assert.equal(plane.signings.length, 1);
  writeFileSync(rootFile, broken);
  await assert.rejects(client()(sign, forever), /holds no certificate in PEM form/);
});

test("citadelClient() says that nobody answers, and that there is no root certificate", async (t) => {
  const { client, rootFile } = await setUp(t);
  const [port] = await freePorts(1);
  const { sign } = await request();
  await assert.rejects(
    client({ address: `localhost:${port}` })(sign, forever),
    /Cannot get a certificate from .* it cannot be reached/,
  );
  await assert.rejects(
    client({ rootCertificate: "/nowhere/root.pem" })(sign, forever),
    /root CA file for the control plane cannot be read: ENOENT.*\/nowhere\/root\.pem/,
  );
  writeFileSync(rootFile, "not a certificate");
  await assert.rejects(client()(sign, forever), /holds no certificate in PEM form/);
});

test("citadelClient() gives up when it is told to", async (t) => {
  const { client } = await setUp(t, { refuseSigning: () => undefined });
  const { sign } = await request();
  await assert.rejects(client()(sign, AbortSignal.abort()), /Cancelled/);
});

test("citadelClient() asks again while that can help, counts it, and takes the token of the moment", async (t) => {
  let failures = 2;
  const refuseSigning = () => (failures-- > 0 ? { code: status.UNAVAILABLE, details: "not leader" } : undefined);
  const { plane, client, lines, metrics } = await setUp(t, { refuseSigning });
  const { sign } = await request();
  const tokens = ["a", "b", "c"];
  await client({ fetchToken: async () => tokens.shift() ?? "" })(sign, forever);
  assert.deepEqual(plane.signings[0]?.metadata.get("authorization"), ["Bearer c"]);
  assert.match(metrics.text(), /istio_agent_num_outgoing_retries{request_type="csr"} 2\n/);
  assert.match(
    lines.join(""),
    /warn\tca request failed, starting attempt 1 in \S+: it cannot be reached \(not leader\)\n/,
  );
});

test("citadelClient() asks five times at most, and once where asking again cannot help", async (t) => {
  let asked = 0;
  let code = status.INTERNAL;
  const refuseSigning = () => {
    asked++;
    return { code, details: "no" };
  };
  const { client } = await setUp(t, { refuseSigning });
  const { sign } = await request();
  await assert.rejects(client()(sign, forever), { code: "CA_FAILED" });
  assert.equal(asked, 5);
  code = status.PERMISSION_DENIED;
  await assert.rejects(client()(sign, forever), { code: "CA_FAILED" });
  assert.equal(asked, 6);
});

test("citadelClient() waits longer than the minute that a CA may wait for a signer of Kubernetes", async (t) => {
  const { plane, client } = await setUp(t);
  const { sign } = await request();
  await client({}, null)(sign, forever);
  const { waitsMs = 0 } = plane.signings[0] ?? {};
  assert.ok(waitsMs > 60_000 && waitsMs < 120_000, `${waitsMs} ms`);
});

test("citadelClient() gives up a CA that never answers, and says how long it waited", async (t) => {
  const { client } = await setUp(t, { delaySigning: () => new Promise(() => undefined) });
  const { sign } = await request();
  await assert.rejects(client({}, 30)(sign, forever), /no answer in 30 ms/);
});

test("citadelClient() shows a certificate where one is provisioned, and until then the token alone", async (t) => {
  const { plane, client, lines } = await setUp(t);
  const folder = temporaryFolder(t);
  const key = await generateKey({ curve: "P-256", rsaBits: 2048, pkcs8: true });
  const chain = await signedChain(certificateRequest({ identity: IDENTITY, ...key }), plane.root, IDENTITY);
  const clientCertificate = { certificate: join(folder, "cert-chain.pem"), key: join(folder, "key.pem") };
  const { sign } = await request();
  const warn = (reason: string) => void lines.push(reason);
  const shown = async () => {
    await client({ clientCertificate, warn })(sign, forever);
    return plane.signings.at(-1)?.clientCertificate?.raw;
  };
  assert.equal(await shown(), undefined);
  writeFileSync(clientCertificate.certificate, "half a certificate");
  assert.equal(await shown(), undefined);
  assert.deepEqual(plane.signings.at(-1)?.metadata.get("authorization"), ["Bearer first-token"]);
  assert.match(lines[0] ?? "", /^no certificate to show the control plane, using token instead: ENOENT/);
  assert.equal(lines.length, 2);
  writeFileSync(clientCertificate.certificate, chain.join(""));
  await assert.rejects(client({ clientCertificate })(sign, forever), /Cannot read the key of the certificate to show/);
  const other = await generateKey({ curve: "P-256", rsaBits: 2048, pkcs8: false });
  for (const [pem, problem] of [
    ["half a key", "holds no private key: .*"],
    [other.pem, `is not the key of ${clientCertificate.certificate}`],
  ]) {
    writeFileSync(clientCertificate.key, pem ?? "");
    await assert.rejects(client({ clientCertificate })(sign, forever), {
      message: new RegExp(`Cannot read the key .* to show the control plane: ${clientCertificate.key} ${problem}$`),
    });
  }
  writeFileSync(clientCertificate.key, key.pem);
  assert.deepEqual(await shown(), new X509Certificate(chain[0] ?? "").raw);
});

test("citadelClient() refuses an answer that is no message", async (t) => {
  const { client } = await setUp(t, { answerWith: () => Buffer.from([0x0a, 0x7f, 1]) });
  const { sign } = await request();
  await assert.rejects(client()(sign, forever), { code: "CA_ANSWER_UNUSABLE" });
});
