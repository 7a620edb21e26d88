/** Revision tags, and who injects by them, on a real API server. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { at } from "#install/fixture.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import { runInstallCommand } from "../../support/install-command.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const MIZZEN = join(import.meta.dirname, "../../../src/bin/mizzen.ts");
const WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
const NAMESPACES = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio.io/rev: prod}}
---
apiVersion: v1
kind: Namespace
metadata: {name: cafe, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {sidecar.istio.io/status: '{"revision":"old"}'}}
spec: {containers: [{name: web, image: web}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: many, namespace: cafe}
spec:
  replicas: 0
  selector: {matchLabels: {app: many}}
  template: {metadata: {labels: {app: many}}, spec: {containers: [{name: web, image: web}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: unselective, namespace: shop}
spec: {ports: [{port: 80}]}
`;

describe("revision tags", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  let server: ApiServer;
  let api: KubernetesApi;
  before(async () => {
    server = await startApiServer({ controllers: true });
    api = await server.api();
    await server.apply(NAMESPACES);
  });
  after(async () => server?.[Symbol.asyncDispose]());

  const mizzen = (...args: string[]) => runInstallCommand(args, { KUBECONFIG: server.kubeConfig });
  const install = async (...args: string[]) => {
    const { code, stderr } = await mizzen("install", "--set", "profile=minimal", "-y", "--no-wait", ...args);
    assert.equal(code, 0, stderr);
    return stderr;
  };
  const webhook = (name: string): Promise<RawObject> => api.call({ path: `${WEBHOOKS}/${name}` });
  const list = async (path: string) => (await api.call<{ readonly items: readonly RawObject[] }>({ path })).items;
  const withTag = async () => (await list(WEBHOOKS)).filter(({ metadata }) => metadata.labels?.["istio.io/tag"]);

  test("without an installation there are none", async () => {
    assert.equal((await mizzen("tag", "list")).stdout, "No Istio revision tags found.\n");
    assert.equal((await mizzen("check-inject", "web.shop")).stdout, "ERROR: no Istio injection hooks present.\n");
    assert.match(
      (await mizzen("injector", "list")).stdout,
      /^NAMESPACE .*\ncafe +MISSING\/istio-injection +<no pods>\n/,
    );
    const { code, stderr } = await mizzen("tag", "set", "prod", "--revision", "canary");
    assert.deepEqual(
      [code, /cannot find MutatingWebhookConfiguration or Service with revision "canary"/.test(stderr)],
      [2, true],
    );
  });

  test("the first revision is the default one, and a second is not", async () => {
    await install("--revision", "canary");
    await install("--revision", "second");
    assert.equal(
      (await mizzen("tag", "list")).stdout,
      "TAG     REVISION NAMESPACES\ndefault canary   \n        second   \n",
    );
    assert.equal(
      at(await webhook("istio-revision-tag-default"), "webhooks", 2, "clientConfig", "service", "name"),
      "istiod-canary",
    );
  });

  test("the revision without a name becomes the default one, and its own webhook matches nothing", async () => {
    assert.match(await install(), /were of revision "canary" and are of "default" from now on/);
    const match = "Namespace label istio-injection=enabled matches";
    const { stdout } = await mizzen("check-inject", "-n", "cafe", "-l", "app=x", "-o", "json");
    assert.deepEqual(
      JSON.parse(stdout).map((one: { name: string; reason: string }) => [one.name, one.reason === match]),
      [
        ["istio-revision-tag-default", true],
        ["istio-sidecar-injector", false],
        ["istio-sidecar-injector-canary", false],
        ["istio-sidecar-injector-second", false],
      ],
    );
    await install();
    assert.equal((await withTag()).length, 1);
  });

  test("set makes a name, list shows who names it, and it can be pointed elsewhere", async () => {
    const { code, stdout, stderr } = await mizzen("tag", "set", "prod", "--revision", "canary");
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^Revision tag "prod" created, referencing control plane revision "canary"/);
    const again = await mizzen("tag", "set", "prod", "--revision", "second");
    assert.deepEqual([again.code, /already exists, and --overwrite is false/.test(again.stderr)], [2, true]);
    assert.equal((await mizzen("tag", "set", "prod", "--revision", "second", "--overwrite")).code, 0);
    const { stdout: json } = await mizzen("tag", "list", "-o", "json");
    assert.deepEqual(JSON.parse(json), [
      { tag: "", revision: "canary", namespaces: [] },
      { tag: "default", revision: "default", namespaces: [] },
      { tag: "prod", revision: "second", namespaces: ["shop"] },
    ]);
    assert.match(
      (await mizzen("tag", "show", "-o", "yaml")).stdout,
      /- namespaces:\n {2}- shop\n {2}revision: second\n {2}tag: prod\n/,
    );
    assert.equal((await mizzen("tag", "list", "-o", "xml")).code, 2);
  });

  test("a tag cannot have the name of a revision, and what overlaps is told", async () => {
    assert.match(
      (await mizzen("tag", "set", "canary", "-r", "second")).stderr,
      /found existing control plane revision with same name/,
    );
    assert.match((await mizzen("tag", "set", "x", "-r", "none")).stderr, /cannot find .* with revision "none"/);
    assert.equal((await mizzen("tag", "set", "x")).code, 2);
    const before = await withTag();
    const generated = await mizzen(
      "tag",
      "generate",
      "default",
      "-r",
      "default",
      "--webhook-name",
      "other",
      "--overwrite",
    );
    assert.match(
      generated.stderr,
      /IST0139.* other \) Webhook overlaps with others: \[istio-revision-tag-default\/namespace/,
    );
    assert.match(
      generated.stdout,
      /^apiVersion: admissionregistration.k8s.io\/v1\nkind: MutatingWebhookConfiguration\n/,
    );
    const quiet = await mizzen(
      "tag",
      "generate",
      "default",
      "-r",
      "default",
      "--webhook-name",
      "other",
      "--overwrite",
      "-y",
    );
    assert.deepEqual([quiet.stderr, quiet.stdout], ["", generated.stdout]);
    assert.deepEqual(await withTag(), before);
  });

  test("pods are told who injects them, found by name or by what selects them", async () => {
    const rows = "istio-revision-tag-prod        second    ✔             Namespace label istio.io/rev=prod matches\n";
    for (const args of [["web.shop"], ["pod/web", "-n", "shop"], ["svc/web.shop"], ["service/web", "-n", "shop"]]) {
      const { stdout, stderr } = await mizzen("check-inject", ...args);
      assert.ok(stdout.includes(rows), `${args.join(" ")}: ${stdout}${stderr}`);
    }
    for (const [name, why] of [
      ["nobody.shop", /pods "nobody" not found/],
      ["rs/many.cafe", /no pods match "rs\/many.cafe"/],
      ["svc/unselective.shop", /has no selector/],
      ["crontab/x", /"crontab" is no kind that selects pods/],
    ] as const)
      assert.match((await mizzen("check-inject", name)).stderr, why);
    assert.equal((await mizzen("check-inject")).code, 2);
    assert.match((await mizzen("check-inject", "-n", "shop", "-l", "a,b")).stderr, /"a" is not of the form a=b/);
    const { stdout } = await mizzen("injector", "list");
    assert.match(stdout, /^shop +second +old: 1 NEEDS RESTART: 1$/m);
    assert.match(stdout, /^shop +istio-revision-tag-prod +second +docker.io\/mizzen\/proxyv2:/m);
    assert.match(stdout, /^DOES NOT AUTOINJECT istio-sidecar-injector +default /m);
    const { namespaces } = JSON.parse((await mizzen("injector", "list", "-n", "shop", "-o", "json")).stdout);
    assert.equal(namespaces[0].needsRestart, 1);
  });

  test("remove asks while somebody names the tag, and no answer is no", async () => {
    const ask = (input: string) =>
      spawnSync(process.execPath, [MIZZEN, "tag", "remove", "prod", "-c", server.kubeConfig], {
        input,
        encoding: "utf8",
      });
    assert.match(
      ask("").stdout,
      /Caution, found 1 namespace\(s\) still injected by tag "prod": shop\n.*Aborting operation/,
    );
    assert.match(ask("y\n").stdout, /Revision tag prod removed\n$/);
    const gone = await mizzen("tag", "remove", "prod", "-y");
    assert.deepEqual(
      [gone.code, /cannot find MutatingWebhookConfiguration or Service for tag/.test(gone.stderr)],
      [2, true],
    );
  });

  test("an uninstalled revision names its tags, and a purge takes all of them", async () => {
    assert.equal((await mizzen("tag", "set", "prod", "-r", "canary")).code, 0);
    assert.match(
      (await mizzen("uninstall", "--revision", "canary", "-y")).stderr,
      /tag "prod" still leads to revision "canary" \(namespaces: shop\)/,
    );
    assert.equal((await withTag()).length, 2);
    await server.kubectl(["delete", "namespace", "shop", "--wait=false"]);
    assert.equal((await mizzen("uninstall", "--purge", "-y")).code, 0);
    assert.deepEqual(await list(WEBHOOKS), []);
    assert.deepEqual(await list("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"), []);
  });
});
