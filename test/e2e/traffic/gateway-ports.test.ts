/** Gateways open the ports that Gateways name, those below 1024 too, as Istio's own samples have them. */
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { meshUnavailable, scratchFolder, upMesh } from "../../support/mesh-run.ts";

const run = promisify(execFile);
const SAMPLE = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: httpbin-gateway
spec:
  selector:
    istio: ingressgateway
  servers:
  - port:
      number: 80
      name: http
      protocol: HTTP
    hosts:
    - "*"
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: httpbin
spec:
  hosts:
  - "*"
  gateways:
  - httpbin-gateway
  http:
  - route:
    - destination:
        host: httpbin
        port:
          number: 8000
`;

/** A Secret with a certificate of its own. */
function secret(name: string): object {
  const folder = mkdtempSync(join(tmpdir(), "certificate-"));
  try {
    const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const files = ["-keyout", "key", "-out", "crt"];
    execFileSync("openssl", ["req", "-x509", ...key, "-subj", "/CN=x", ...files], { cwd: folder, stdio: "pipe" });
    const [crt, pem] = ["crt", "key"].map((file) => readFileSync(join(folder, file)).toString("base64"));
    const metadata = { name, namespace: "istio-system" };
    return { apiVersion: "v1", kind: "Secret", metadata, data: { "tls.crt": crt, "tls.key": pem } };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a gateway serves on 80 and 443 as it does on high ports", { skip: meshUnavailable() }, async () => {
  await using folder = await scratchFolder("samples/httpbin");
  const file = join(folder.path, "mesh.yaml");
  const published = '["127.0.0.1:0:80", "127.0.0.1:0:443"]';
  await writeFile(file, readFileSync(file, "utf8").replace('["127.0.0.1:8080:80"]', published));
  await rm(join(folder.path, "httpbin-gateway.yaml"));
  await using mesh = await upMesh(folder.path);
  await (await mesh.mesh()).apply(SAMPLE);
  const { published: ports } = await mesh.status();
  const [http = "", https = ""] = ports.map(({ address }) => address);
  const curl = async (...args: readonly string[]) => (await run("curl", ["-sS", "-m", "10", ...args])).stdout;
  assert.equal(await curl(`http://${http}/hostname`), '"httpbin"');
  const server = {
    port: { number: 443, name: "https", protocol: "HTTPS" },
    hosts: ["*"],
    tls: { mode: "SIMPLE", credentialName: "own" },
  };
  const head = { apiVersion: "networking.istio.io/v1", metadata: { name: "secure", namespace: "default" } };
  const spec = { selector: { istio: "ingressgateway" }, servers: [server] };
  const route = [{ destination: { host: "httpbin", port: { number: 8000 } } }];
  await (await mesh.mesh()).apply([
    secret("own"),
    { ...head, kind: "Gateway", spec },
    { ...head, kind: "VirtualService", spec: { hosts: ["*"], gateways: ["secure"], http: [{ route }] } },
  ]);
  assert.equal(await curl("-k", `https://${https}/hostname`), '"httpbin"');
});
