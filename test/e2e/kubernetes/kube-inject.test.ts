/** `mizzen kube-inject` with the settings that the ConfigMaps of a real API server hold. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { MERGE_PATCH } from "#lib/kubernetes/api-client.ts";
import { runInstallCommand } from "../../support/install-command.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const WEB = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: web:1}]}}
`;
const MAPS = `
apiVersion: v1
kind: ConfigMap
metadata: {name: other-mesh, namespace: istio-system}
data: {mesh: "trustDomain: other"}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other-injection, namespace: istio-system}
data:
  values: '{"global": {"hub": "other", "tag": "1"}}'
  config: |
    injectedAnnotations: {added: by-the-cluster}
    defaultTemplates: [own]
    templates:
      own: |
        metadata: {labels: {image: "{{ .ProxyImage }}", td: "{{ .MeshConfig.TrustDomain }}"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: empty, namespace: istio-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: broken, namespace: istio-system}
data: {mesh: "trustDomain: [", values: "{"}
`;

describe("mizzen kube-inject in a cluster", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-kube-inject-"));
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  let server: ApiServer;
  before(async () => {
    server = await startApiServer();
    for (const [revision, domain] of [
      ["", "td1"],
      ["canary", "td2"],
    ]) {
      const settings = ["--set", "profile=minimal", "--set", `meshConfig.trustDomain=${domain}`];
      const install = ["install", "-y", "--no-wait", "--revision", `${revision}`, ...settings];
      assert.equal((await runInstallCommand(install, { KUBECONFIG: server.kubeConfig })).code, 0);
    }
    await server.apply(MAPS);
    await server.kubectl(["create", "namespace", "shop"]);
    // Nothing carries the API server to a pod.
    await server.kubectl(["delete", "validatingwebhookconfigurations", "--all"]);
    file("web.yaml", WEB);
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const inject = (...args: string[]) =>
    runInstallCommand(["kube-inject", "-f", join(folder, "web.yaml"), ...args], { KUBECONFIG: server.kubeConfig });
  const injected = async (...args: string[]) => {
    const { code, stdout, stderr } = await inject(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };

  test("mesh config, values and templates are those of the installation", async () => {
    const text = await injected();
    assert.match(text, /name: TRUST_DOMAIN\n +value: td1\n/);
    assert.match(text, /image: docker\.io\/mizzen\/proxyv2:/);
    assert.match(text, /"revision":"default"/);
  });

  test("a revision has its own, and the tag default says which holds where none is named", async () => {
    const canary = await injected("--revision", "canary");
    assert.match(canary, /name: TRUST_DOMAIN\n +value: td2\n/);
    assert.match(canary, /value: istiod-canary\.istio-system\.svc:15012\n/);
    const tag = ["tag", "set", "default", "--revision", "canary", "--overwrite", "-y"];
    assert.equal((await runInstallCommand(tag, { KUBECONFIG: server.kubeConfig })).code, 0);
    assert.equal(await injected(), canary);
    assert.match(await injected("-r", "default"), /value: td1\n/);
  });

  test("other ConfigMaps may be named, and files count more", async () => {
    const named = ["--meshConfigMapName", "other-mesh", "--injectConfigMapName", "other-injection"];
    assert.match(await injected(...named), / {8}image: other\/proxyv2:1\n {8}td: other\n/);
    assert.match(await injected(...named), / {8}added: by-the-cluster\n/);
    const mesh = ["--meshConfigFile", file("mesh.yaml", "trustDomain: file\n")];
    assert.match(await injected(...named, ...mesh), /td: file\n/);
    const values = ["--valuesFile", file("values.json", '{"global": {"hub": "h", "tag": "t"}}')];
    assert.match(await injected(...named, ...values), /image: h\/proxyv2:t\n/);
    const operator = file("iop.yaml", "kind: IstioOperator\nspec: {tag: t9, values: {global: {hub: h9}}}\n");
    assert.match(await injected(...named, "--operatorFileName", operator), /image: h9\/proxyv2:t9\n {8}td: other\n/);
  });

  test("ProxyConfig objects count, as for the webhook", async () => {
    await server.apply(`
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: all, namespace: istio-system}
spec: {concurrency: 7}
---
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: own, namespace: shop}
spec: {selector: {matchLabels: {app: web}}, concurrency: 9}
`);
    assert.match(await injected("-r", "default"), /"concurrency":7/);
    const shop = file("shop.yaml", WEB.replace("{name: web}", "{name: web, namespace: shop}"));
    assert.match(await injected("-r", "default", "-f", shop), /"concurrency":9/);
    const files = [
      "--injectConfigFile",
      file("own.yaml", "metadata: {labels: {of: '{{ .ProxyConfig.Concurrency.GetValue }}'}}"),
    ];
    assert.match(await injected("-r", "default", ...files), /of: "0"/);
  });

  test("nodes decide about native sidecars, unless the environment does", async () => {
    const node = (version: string) =>
      JSON.stringify({
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: "n" },
        status: { nodeInfo: { kubeletVersion: version } },
      });
    await server.apply(node(""));
    const api = await server.api();
    const update = (kubeletVersion: string) =>
      api.call({
        method: "PATCH",
        path: "/api/v1/nodes/n/status",
        contentType: MERGE_PATCH,
        body: { status: { nodeInfo: { kubeletVersion } } },
      });
    await update("v1.33.1");
    assert.match(await injected(), /restartPolicy: Always/);
    await update("v1.32.9");
    assert.doesNotMatch(await injected(), /restartPolicy: Always/);
  });

  test("what is missing or wrong is named", async () => {
    for (const [args, why] of [
      [["-i", "nowhere"], /ConfigMap istio.* is not in namespace nowhere: use --meshConfigFile/],
      [["-r", "gone"], /ConfigMap istio-gone is not in namespace istio-system/],
      [["--injectConfigMapName", "gone"], /ConfigMap gone is not in .*: use --injectConfigFile/],
      [["--meshConfigMapName", "empty"], /ConfigMap empty has no key "mesh"/],
      [["--injectConfigMapName", "empty"], /ConfigMap empty has no key "values"/],
    ] as const) {
      const { code, stderr } = await inject(...args);
      assert.match(stderr, why);
      assert.equal(code, 2);
    }
    assert.match((await inject("--meshConfigMapName", "broken")).stderr, /mesh config/);
    assert.match((await inject("--injectConfigMapName", "broken")).stderr, /values: line 1/);
    assert.match((await inject("--context", "gone")).stderr, /gone/);
    assert.match((await inject("--kubeconfig", join(folder, "none"))).stderr, /none/);
  });
});
