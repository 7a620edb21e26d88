/** What istioctl and we say and write about tags and injection in one cluster. Runs where `ISTIOCTL` names one. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { promisify, stripVTControlCharacters } from "node:util";
import { readObjects } from "#install/chart.ts";
import { OWNER_LABEL } from "#install/manifest.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { runInstallCommand } from "../support/install-command.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../support/kubernetes/api-server.ts";

const { ISTIOCTL = "" } = process.env;
const run = promisify(execFile);
const PODS = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio.io/rev: prod}}
---
apiVersion: v1
kind: Namespace
metadata: {name: cafe, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: quiet, labels: {istio-injection: disabled}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {sidecar.istio.io/status: '{"revision":"old"}'}}
spec: {containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: shy, namespace: cafe, labels: {app: shy, sidecar.istio.io/inject: "false"}}
spec: {containers: [{name: web, image: web}]}
`;

if (ISTIOCTL !== "") describe("istioctl and mizzen", { skip: NO_KUBERNETES, timeout: 600_000 }, inOneCluster);

function inOneCluster(): void {
  let server: ApiServer;
  before(async () => {
    server = await startApiServer();
    await server.apply(PODS);
    for (const revision of ["", "canary"]) {
      const args = ["install", "-y", "--no-wait", "--set", "profile=minimal", "--revision", revision];
      assert.equal((await runInstallCommand(args, { KUBECONFIG: server.kubeConfig })).code, 0);
    }
  });
  after(async () => server?.[Symbol.asyncDispose]());

  const istioctl = async (...args: string[]) => {
    const { stdout } = await run(ISTIOCTL, args, { env: { KUBECONFIG: server.kubeConfig, HOME: "/nonexistent" } });
    return stripVTControlCharacters(stdout);
  };
  const mizzen = async (...args: string[]) =>
    (await runInstallCommand(args[0] === "x" ? args.slice(1) : args, { KUBECONFIG: server.kubeConfig })).stdout;

  /** Without what tells the two programs apart, and what Go writes for fields that are not set. */
  function plain(text: string): readonly RawObject[] {
    return readObjects(text.replaceAll(/ *targetPort: 0\n/g, ""), "tag").map(({ status: _, ...object }) => {
      const labels = Object.entries(object.metadata.labels ?? {}).filter(
        ([name]) => !["app.kubernetes.io/version", "helm.sh/chart", OWNER_LABEL].includes(name),
      );
      return { ...object, metadata: { ...object.metadata, labels: Object.fromEntries(labels) } };
    });
  }

  for (const args of [
    ["prod", "--revision", "canary"],
    ["prod", "--revision", "canary", "--webhook-name", "mine"],
    ["default", "--revision", "canary", "--overwrite"],
    ["default", "--revision", "canary", "--overwrite", "--auto-inject-namespaces"],
  ])
    test(`tag generate ${args.join(" ")}`, async () => {
      assert.deepEqual(
        plain(await mizzen("tag", "generate", ...args)),
        plain(await istioctl("tag", "generate", ...args)),
      );
    });

  test("each lists what the other set, and removes it", async () => {
    const lists = async () => {
      for (const format of ["table", "json", "yaml"])
        assert.equal(await mizzen("tag", "list", "-o", format), await istioctl("tag", "list", "-o", format));
    };
    await lists();
    await istioctl("tag", "set", "prod", "--revision", "canary");
    await mizzen("tag", "set", "test", "--revision", "canary");
    await lists();
    assert.equal(await mizzen("tag", "remove", "prod", "-y"), "Revision tag prod removed\n");
    assert.equal(await istioctl("tag", "remove", "test"), "Revision tag test removed\n");
    await istioctl("tag", "set", "prod", "--revision", "canary");
    const again = ["install", "-y", "--no-wait", "--set", "profile=minimal", "--revision", "canary"];
    assert.match((await runInstallCommand(again, { KUBECONFIG: server.kubeConfig })).stderr, /^installed/m);
    assert.match(await mizzen("tag", "list"), /^prod +canary +shop$/m);
    await lists();
  });

  for (const args of [
    ["injector", "list"],
    ["injector", "list", "-n", "shop"],
    ["check-inject", "web.shop"],
    ["check-inject", "pod/shy", "-n", "cafe"],
    ["check-inject", "-n", "cafe", "-l", "app=x"],
    ["check-inject", "-n", "quiet", "-l", "sidecar.istio.io/inject=true"],
    ["check-inject", "-n", "default", "-l", "istio.io/rev=prod"],
  ])
    test(args.join(" "), async () => assert.equal(await mizzen("x", ...args), await istioctl("x", ...args)));
}
