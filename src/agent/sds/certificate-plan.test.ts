import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { parseAgentConfig } from "../agent-config.ts";
import { HERE } from "../place.ts";
import { certificatePlan } from "./certificate-plan.ts";

type Context = { after(fn: () => void): void };

const CERTS = ["etc/certs/cert-chain.pem", "etc/certs/key.pem", "etc/certs/root-cert.pem"];
const CREDENTIALS = "var/run/secrets/workload-spiffe-credentials";
const SPIFFE = ["cert-chain.pem", "key.pem", "root-cert.pem"].map((name) => `${CREDENTIALS}/${name}`);
const GKE = ["certificates.pem", "private_key.pem", "ca_certificates.pem"].map((name) => `${CREDENTIALS}/${name}`);

interface Given {
  readonly env?: Record<string, string>;
  readonly files?: readonly string[];
  readonly servedByOthers?: boolean;
}

function plan(t: Context, { env = {}, files = [], servedByOthers = false }: Given) {
  const folder = temporaryFolder(t);
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), "x");
  }
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const config = parseAgentConfig(env).config.identity;
  const { mounted, askCa } = certificatePlan({ config, place: { ...HERE, folder }, servedByOthers, log });
  const relative = mounted && Object.values(mounted).map((path: string) => path.slice(folder.length + 1));
  return { mounted: relative, askCa, text: lines.join("") };
}

test("certificatePlan() asks the CA for what is not in files", (t) => {
  assert.deepEqual(plan(t, {}).mounted, CERTS);
  assert.equal(plan(t, {}).askCa, true);
  assert.equal(plan(t, { files: CERTS.slice(0, 2) }).askCa, true);
  assert.equal(plan(t, { files: CERTS.slice(2) }).askCa, true);
  assert.equal(plan(t, { files: CERTS }).askCa, false);
});

test("certificatePlan() takes workload-spiffe-credentials when all three files are there", (t) => {
  const { mounted, askCa, text } = plan(t, { files: [...SPIFFE, ...CERTS] });
  assert.deepEqual([mounted, askCa], [SPIFFE, false]);
  assert.match(text, /workload certificate files detected, creating secret manager without caClient/);
  assert.deepEqual(plan(t, { files: SPIFFE.slice(1) }).mounted, CERTS);
});

test("certificatePlan() asks no CA with FILE_MOUNTED_CERTS or a foreign SDS server, even before the files are there", (t) => {
  const mounted = plan(t, { env: { FILE_MOUNTED_CERTS: "true" } });
  assert.deepEqual([mounted.mounted, mounted.askCa], [CERTS, false]);
  assert.match(mounted.text, /Workload is using file mounted certificates\. Skipping connecting to CA/);
  assert.equal(plan(t, { servedByOthers: true }).askCa, false);
});

test("certificatePlan() takes the names of GKE for its provider, and insists on them", (t) => {
  const env = { CA_PROVIDER: "GkeWorkloadCertificate" };
  const { mounted, askCa } = plan(t, { env, files: GKE });
  assert.deepEqual([mounted, askCa], [GKE, false]);
  assert.throws(() => plan(t, { env, files: GKE.slice(1) }), {
    code: "IDENTITY_INVALID",
    message: /GKE workload certificate files \(.*certificates\.pem.*\) not present/,
  });
});

test("certificatePlan() does not take its own output for another's", (t) => {
  const { mounted, askCa } = plan(t, { env: { OUTPUT_CERTS: "./etc/certs/" }, files: CERTS });
  assert.deepEqual([mounted, askCa], [undefined, true]);
});

test("certificatePlan() refuses PROV_CERT together with mounted certificates", (t) => {
  const message = "invalid options: PROV_CERT and FILE_MOUNTED_CERTS are mutually exclusive";
  assert.throws(() => plan(t, { env: { PROV_CERT: "/p", FILE_MOUNTED_CERTS: "true" } }), { message });
  assert.throws(() => plan(t, { env: { PROV_CERT: "/p", CA_PROVIDER: "GkeWorkloadCertificate" }, files: GKE }), {
    message,
  });
});
