import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { createLogger } from "#lib/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import {
  type FakeControlPlane,
  type FakeOptions,
  freePorts,
  startFakeControlPlane,
  temporaryFolder,
  testRoot,
} from "../../../test/support/fake-control-plane.ts";
import type { ControlPlaneOptions } from "../control-plane.ts";
import { caClient } from "./ca-client.ts";
import { workloadCertificate } from "./certificate.ts";
import { generateKey } from "./key.ts";

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
  const client = (more: Partial<ControlPlaneOptions> = {}) =>
    caClient({ ...optionsOf(plane, rootFile, tokenFile), ...more }, log);
  return { plane, client, rootFile, tokenFile, lines };
}

function optionsOf({ address }: FakeControlPlane, rootCertificate: string, tokenFile: string): ControlPlaneOptions {
  return { address, rootCertificate, subjectAltName: "", headers: { clusterid: "Kubernetes", EXTRA: "x" }, tokenFile };
}

async function request() {
  const key = await generateKey({ curve: undefined, rsaBits: 2048, pkcs8: false });
  return {
    key,
    sign: { csr: certificateRequest({ identity: "spiffe://x", ...key }), ttlSeconds: 86_400, certSigner: "" },
  };
}

test("caClient() gets a chain for its key, with token, cluster and lifetime in the request", async (t) => {
  const { plane, client, tokenFile } = await setUp(t);
  const { key, sign } = await request();
  assert.match(workloadCertificate(await client()(sign, forever), key, 0).chain, /BEGIN CERTIFICATE/);
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

test("caClient() says that the token was refused", async (t) => {
  const refuseSigning = () => ({ code: status.UNAUTHENTICATED, details: "token expired" });
  const { client } = await setUp(t, { refuseSigning });
  const { sign } = await request();
  await assert.rejects(client()(sign, forever), {
    code: "CA_FAILED",
    message: /^Cannot get a certificate from localhost:\d+: the service account token was refused \(token expired\)$/,
  });
});

test("caClient() goes on without a token and says so", async (t) => {
  const { plane, client, lines } = await setUp(t);
  const { sign } = await request();
  await client({ tokenFile: "/nowhere/token" })(sign, forever);
  assert.deepEqual(plane.signings[0]?.metadata.get("authorization"), []);
  assert.match(lines.join(""), /There is no service account token: .*\/nowhere\/token/);
});

test("caClient() does not talk to a server of another root, or of another name", async (t) => {
  const { plane, client, rootFile } = await setUp(t);
  const { sign } = await request();
  await assert.rejects(client({ subjectAltName: "other.example" })(sign, forever), /it cannot be reached/);
  writeFileSync(rootFile, (await testRoot("other")).certificate.toString());
  await assert.rejects(client()(sign, forever), /it cannot be reached/);
  assert.equal(plane.signings.length, 0);
});

test("caClient() says that nobody answers, and that there is no root certificate", async (t) => {
  const { client, rootFile } = await setUp(t);
  const [port] = await freePorts(1);
  const { sign } = await request();
  await assert.rejects(
    client({ address: `localhost:${port}` })(sign, forever),
    /Cannot get a certificate from .* it cannot be reached/,
  );
  await assert.rejects(
    client({ rootCertificate: "/nowhere/root.pem" })(sign, forever),
    /root certificate: ENOENT.*\/nowhere\/root\.pem/,
  );
  writeFileSync(rootFile, "not a certificate");
  await assert.rejects(client()(sign, forever), /holds no certificate in PEM form/);
});

test("caClient() gives up when it is told to", async (t) => {
  const { client } = await setUp(t, { refuseSigning: () => undefined });
  const { sign } = await request();
  await assert.rejects(client()(sign, AbortSignal.abort()), /Cancelled/);
});
