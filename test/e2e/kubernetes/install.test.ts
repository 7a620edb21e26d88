/** `mizzen install` and `uninstall` against a real API server, where nothing runs pods: the test says that they are ready. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";

const MIZZEN = join(import.meta.dirname, "../../../src/bin/mizzen.ts");
const KINDS = [
  "deployments,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,horizontalpodautoscalers,leases,secrets",
  "clusterroles,clusterrolebindings,namespaces,crd,mutatingwebhookconfigurations,validatingwebhookconfigurations",
];

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

describe("mizzen install", { skip: NO_KUBERNETES, timeout: 240_000 }, () => {
  let server: ApiServer;
  before(async () => {
    server = await startApiServer({ controllers: true });
  });
  after(() => server?.[Symbol.asyncDispose]());

  function mizzen(...args: string[]): Promise<Ended> {
    return new Promise((resolve) => {
      const env = {
        PATH: process.env.PATH,
        KUBECONFIG: server.kubeConfig,
        NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
      };
      execFile(process.execPath, [MIZZEN, ...args], { env, maxBuffer: 1 << 26 }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === "number" ? error.code : error === null ? 0 : 1, stdout, stderr }),
      );
    });
  }

  /** Runs a command, and is the kubelet meanwhile: every pod is ready. */
  async function whilePodsRun(running: Promise<Ended>): Promise<Ended> {
    const ended = running.then(() => true);
    const status = JSON.stringify({ status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } });
    while (!(await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100, false))]))) {
      const names = await server.kubectl(["-n", "istio-system", "get", "pods", "-o", "name"]).catch(() => "");
      for (const name of names.split("\n").filter(Boolean)) {
        await server
          .kubectl(["-n", "istio-system", "patch", name, "--subresource=status", "-p", status])
          .catch(() => "");
      }
    }
    return running;
  }

  /** All objects by name, but for those that controllers of Kubernetes make. */
  async function everything(): Promise<readonly string[]> {
    const lists = KINDS.map((kinds) =>
      server.kubectl([
        "get",
        kinds,
        "-A",
        "-o",
        "custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name",
        "--no-headers",
      ]),
    );
    const lines = (await Promise.all(lists)).flatMap((list) =>
      list.split("\n").map((line) => line.trim().split(/\s+/).join("/")),
    );
    return lines
      .filter(
        (line) =>
          line !== "" &&
          !/^Lease\/kube-|^ConfigMap\/istio-system\/kube-root|^ServiceAccount\/istio-system\/default$/.test(line),
      )
      .sort();
  }

  test("twice is once, an upgrade removes what it has not, and a purge leaves nothing", async () => {
    const clean = await everything();
    const first = await whilePodsRun(mizzen("install", "--set", "profile=demo", "-y"));
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /Deployment\/istio-system\/istio-egressgateway is ready/);
    const installed = await everything();
    assert.ok(installed.includes("Deployment/istio-system/istiod"));
    assert.ok(installed.includes("CustomResourceDefinition/<none>/virtualservices.networking.istio.io"));
    const again = await whilePodsRun(mizzen("install", "--set", "profile=demo", "-y"));
    assert.equal(again.code, 0, again.stderr);
    assert.deepEqual(await everything(), installed);

    await server.apply(
      "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a]}\n",
    );
    const short = await server.kubectl(["get", "vs"]);
    assert.match(short, /NAME +GATEWAYS +HOSTS +AGE/);
    assert.match(await server.kubectl(["explain", "virtualservice.spec.http.retries"]), /perTryTimeout/);

    const upgraded = await whilePodsRun(mizzen("upgrade", "--set", "profile=minimal", "-y"));
    assert.equal(upgraded.code, 0, upgraded.stderr);
    assert.ok(
      !(await everything()).some((line) => line.includes("gateway/") || line.endsWith("/istio-ingressgateway")),
    );
    assert.ok((await server.kubectl(["get", "vs"])).includes("v "));

    const removed = await mizzen("uninstall", "--purge", "-y");
    assert.equal(removed.code, 0, removed.stderr);
    await server.kubectl(["wait", "--for=delete", "namespace/istio-system", "--timeout=60s"]);
    await server.kubectl(["wait", "--for=delete", "crd", "--all", "--timeout=60s"]).catch(() => "");
    assert.deepEqual(await everything(), clean);
  });

  test("it does not wait for ever, and says for what", async () => {
    const { code, stderr } = await mizzen("install", "--set", "profile=minimal", "-y", "--readiness-timeout=1s");
    assert.equal(code, 1);
    assert.match(stderr, /not ready in 1 s: Deployment\/istio-system\/istiod: /);
    await mizzen("uninstall", "--purge", "-y");
  });

  test("what stands in the way is told before anything is changed", async () => {
    await server.kubectl(["create", "namespace", "other"]);
    await server.kubectl(["-n", "other", "create", "deployment", "istiod", "--image=x"]);
    const { code, stderr } = await mizzen("install", "-n", "other", "-y");
    assert.equal(code, 1);
    assert.match(stderr, /in the way: Deployment\/other\/istiod is there and not ours/);
    assert.equal((await server.kubectl(["get", "configmap", "-n", "other", "-o", "name"])).includes("istio"), false);
  });

  for (const [args, reason] of [
    [["--set", "profile=huge"], /there is no profile "huge"/],
    [["--set", "a"], /write name=value/],
    [["-f", "/nowhere.yaml"], /nowhere\.yaml cannot be read/],
    [["--readiness-timeout=soon"], /is no duration/],
    [["-c", "/nowhere"], /kubeconfig \/nowhere cannot be read/],
    [[], /Say -y to go on/],
  ] as const) {
    test(`a wrong command line is told in one line: ${args.join(" ") || "no -y"}`, async () => {
      const { code, stderr } = await mizzen("install", ...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, reason);
    });
  }
});
