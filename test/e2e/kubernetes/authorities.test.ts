/** Who gives out roots: the control plane's own authority, or nobody where somebody else signs. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { emptyRevocationList, selfSigned } from "../../support/certificates.ts";
import { TestControlPlane } from "../../support/control-plane.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { webhookConfigurations } from "../../support/kubernetes/webhook-configurations.ts";

describe("roots in Kubernetes", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-authorities-"));
  let server: ApiServer;
  before(async () => {
    server = await startApiServer();
    await server.kubectl(["create", "namespace", "istio-system"]);
    await server.kubectl(["create", "namespace", "shop"]);
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const textIn = async (name: string, key: string, namespace = "shop") => {
    const path = `jsonpath={.data['${key.replace(".", "\\.")}']}`;
    return server.kubectl(["-n", namespace, "get", "configmap", name, "-o", path]).catch(() => undefined);
  };

  test("without an authority no namespace has roots, but webhooks believe the operator's certificate", async () => {
    const { certificate, key } = selfSigned("istiod.istio-system.svc");
    const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    writeFileSync(certFile, certificate);
    writeFileSync(keyFile, key);
    for (const webhook of (await webhookConfigurations()).injection) await server.apply(JSON.stringify(webhook));
    const flags = [`--tlsCertFile=${certFile}`, `--tlsKeyFile=${keyFile}`, `--caCertFile=${certFile}`];
    await using plane = new TestControlPlane({
      cluster: await server.api(),
      flags,
      env: { ENABLE_CA_SERVER: "false", POD_NAME: "istiod-1" },
    });
    await plane.ready();
    await plane.logged(/elected as leader/);
    const bundle = [
      "get",
      "mutatingwebhookconfiguration",
      "istio-sidecar-injector",
      "-o",
      "jsonpath={.webhooks[0].clientConfig.caBundle}",
    ];
    const wanted = Buffer.from(certificate).toString("base64");
    await eventually("the bundle", async () => (await server.kubectl(bundle)) === wanted);
    assert.equal(await textIn("istio-ca-root-cert", "root-cert.pem"), undefined);
    assert.equal(await textIn("istio-ca-crl", "ca-crl.pem"), undefined);
  });

  test("with one each namespace has its roots, and what the operator revoked", async () => {
    await using plane = new TestControlPlane({ cluster: await server.api(), env: { POD_NAME: "istiod-1" } });
    await plane.ready();
    await eventually("roots", async () =>
      /CERTIFICATE/.test((await textIn("istio-ca-root-cert", "root-cert.pem")) ?? ""),
    );
    await eventually("no revocations", async () => (await textIn("istio-ca-crl", "ca-crl.pem")) === "");
    const key = readFileSync(join(plane.folder, "ca/shared/ca-key.pem"), "utf8");
    writeFileSync(join(plane.folder, "ca/ca-crl.pem"), await emptyRevocationList(key));
    await eventually("revocations", async () => /X509 CRL/.test((await textIn("istio-ca-crl", "ca-crl.pem")) ?? ""));
    await server.kubectl(["create", "namespace", "later"]);
    for (const [map, key] of [
      ["istio-ca-root-cert", "root-cert.pem"],
      ["istio-ca-crl", "ca-crl.pem"],
    ] as const) {
      await eventually(`${map} in a new one`, async () => (await textIn(map, key, "later")) !== undefined);
    }
  });
});
