/** Installations on a real API server, where nothing runs pods: the test says that they are ready. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { tokenReviewAuthenticator } from "#authn/token-review.ts";
import { at, installed, MANIFESTS } from "#install/fixture.ts";
import { OWNER_LABEL } from "#install/manifest.ts";
import { ApiError, type KubernetesApi, MERGE_PATCH, type RawObject } from "#lib/kubernetes/api-client.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { runInstallCommand } from "../../support/install-command.ts";
import type { Ended } from "../../support/install-terminal.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import { ControlPlaneProcess } from "../../support/kubernetes/control-plane-process.ts";

const LISTS = [
  "/apis/apps/v1/deployments",
  ...["services", "configmaps", "serviceaccounts", "secrets", "namespaces"].map((name) => `/api/v1/${name}`),
  ...["roles", "rolebindings", "clusterroles", "clusterrolebindings"].map(
    (name) => `/apis/rbac.authorization.k8s.io/v1/${name}`,
  ),
  "/apis/policy/v1/poddisruptionbudgets",
  "/apis/networking.k8s.io/v1/networkpolicies",
  "/apis/autoscaling/v2/horizontalpodautoscalers",
  "/apis/coordination.k8s.io/v1/leases",
  "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
  "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
  "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
];
/** What controllers of Kubernetes make. */
const NOT_OURS = /^leases\/kube-|^configmaps\/.*\/kube-root-ca\.crt$|^serviceaccounts\/.*\/default$/;

describe("mizzen install", { skip: NO_KUBERNETES, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-install-"));
  let server: ApiServer;
  let api: KubernetesApi;
  before(async () => {
    server = await startApiServer({ controllers: true });
    api = await server.api();
  });
  after(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const mizzen = (...args: string[]) => runInstallCommand(args, { KUBECONFIG: server.kubeConfig });

  /** Runs a command, and is the kubelet meanwhile: every pod is ready. */
  async function whilePodsRun(running: Promise<Ended>): Promise<Ended> {
    let isOver = false;
    const ended = running.finally(() => {
      isOver = true;
    });
    const body = { status: { phase: "Running", conditions: [{ type: "Ready", status: "True" }] } };
    while (!isOver) {
      for (const { metadata, status } of await list("/api/v1/namespaces/istio-system/pods")) {
        const path = `/api/v1/namespaces/istio-system/pods/${metadata.name}/status`;
        if (at(status, "phase") !== "Running") {
          await unless404(api.call({ method: "PATCH", path, body, contentType: MERGE_PATCH }));
        }
      }
      await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 100))]);
    }
    return running;
  }

  async function list(path: string): Promise<readonly RawObject[]> {
    return (await api.call<{ readonly items: readonly RawObject[] }>({ path })).items;
  }

  /** All objects by name, but for those that controllers of Kubernetes make. */
  async function everything(): Promise<readonly string[]> {
    const lists = LISTS.map(async (path) => {
      const kind = path.split("/").at(-1);
      return (await list(path)).map(({ metadata }) => [kind, metadata.namespace ?? "", metadata.name].join("/"));
    });
    return (await Promise.all(lists))
      .flat()
      .filter((name) => !NOT_OURS.test(name))
      .sort();
  }

  /** What of each object somebody wants, by name: another version of it is a change. */
  async function versions(): Promise<Readonly<Record<string, unknown>>> {
    const lists = LISTS.map(async (path) =>
      (await list(path)).map(({ metadata, status }) => {
        const name = [path, metadata.namespace ?? "", metadata.name].join("/");
        return [name, status === undefined ? metadata.resourceVersion : (metadata.generation ?? 0)] as const;
      }),
    );
    return Object.fromEntries((await Promise.all(lists)).flat().filter(([name]) => !/leases|kube-/.test(name)));
  }

  async function purged(): Promise<void> {
    const { code, stderr } = await mizzen("uninstall", "--purge", "-y");
    assert.equal(code, 0, stderr);
  }

  test("twice is once, an upgrade removes what it has not, and a purge leaves nothing", async () => {
    const clean = await everything();
    const everyKind = [
      "global.networkPolicy.enabled=true",
      "pilot.autoscaleEnabled=true",
      "pilot.jwksResolverExtraRootCA=x",
    ]
      .concat("revisionTags={prod}", "global.multiCluster.enabled=true")
      .flatMap((set) => ["--set", set]);
    const first = await whilePodsRun(mizzen("install", "--set", "profile=demo", ...everyKind, "-y"));
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stderr, /Deployment\/istio-system\/istio-egressgateway is ready/);
    const installed = await everything();
    assert.ok(installed.includes("deployments/istio-system/istiod"));
    assert.ok(installed.includes("networkpolicies/istio-system/istiod"));
    assert.ok(installed.includes("mutatingwebhookconfigurations//istio-revision-tag-prod"));
    assert.ok(installed.includes("customresourcedefinitions//virtualservices.networking.istio.io"));
    const again = await whilePodsRun(mizzen("install", "--set", "profile=demo", ...everyKind, "-y"));
    assert.equal(again.code, 0, again.stderr);
    assert.deepEqual(await everything(), installed);

    // Nothing carries the API server to a pod.
    await server.kubectl(["delete", "validatingwebhookconfigurations", "--all"]);
    await server.apply(
      "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a]}\n",
    );
    assert.match(await server.kubectl(["get", "vs"]), /NAME +GATEWAYS +HOSTS +AGE/);
    assert.match(await server.kubectl(["explain", "virtualservice.spec.http.retries"]), /perTryTimeout/);

    const addons = join(import.meta.dirname, "../../../samples/addons");
    await server.kubectl(["apply", "--server-side", "--dry-run=server", "-f", addons]);

    const upgraded = await whilePodsRun(mizzen("upgrade", "--set", "profile=minimal", "-y"));
    assert.equal(upgraded.code, 0, upgraded.stderr);
    assert.deepEqual(
      (await everything()).filter((name) =>
        /gressgateway|networkpolicies|tag-prod|extra-cacerts|istio-reader/.test(name),
      ),
      [],
    );
    assert.equal((await list("/apis/networking.istio.io/v1/virtualservices")).length, 1);
    await purged();
    assert.deepEqual(await everything(), clean);
  });

  test("a second time writes each object once and changes none, nor what the control plane has decided", async () => {
    const command = ["install", "--set", "profile=demo", "-y", "--no-wait"];
    assert.equal((await mizzen(...command)).code, 0);
    for (const name of ["istio-validator-istio-system", "istiod-default-validator"]) {
      const decided = { op: "replace", path: "/webhooks/0/failurePolicy", value: "Fail" };
      const patch = ["--type=json", "-p", JSON.stringify([decided])];
      await server.kubectl(["patch", "validatingwebhookconfiguration", name, ...patch]);
    }
    const before = await versions();
    const { stderr } = await mizzen(...command);
    const written = stderr.split("\n").filter((line) => line.startsWith("applied "));
    assert.deepEqual(written, [...new Set(written)]);
    assert.deepEqual(await versions(), before);
    await purged();
  });

  test("what an earlier version left is upgraded, also where fields cannot be changed, and can be purged", async () => {
    const clean = await everything();
    const labels = { [OWNER_LABEL]: "default" };
    const role = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "view" };
    const earlier = [
      { apiVersion: "v1", kind: "Namespace", metadata: { name: "istio-system", labels } },
      {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "istiod", namespace: "istio-system", labels },
        spec: {
          selector: { matchLabels: { was: "istiod" } },
          template: { metadata: { labels: { was: "istiod" } }, spec: { containers: [{ name: "a", image: "a" }] } },
        },
      },
      {
        apiVersion: role.apiGroup.concat("/v1"),
        kind: "ClusterRoleBinding",
        metadata: { name: "istiod-clusterrole-istio-system", labels },
        roleRef: role,
      },
      { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "gone", namespace: "istio-system", labels } },
    ];
    const manifest = earlier.map((object) => JSON.stringify(object)).join("\n---\n");
    await server.apply(manifest);
    const { code, stderr } = await mizzen("upgrade", "--set", "profile=minimal", "-y", "--no-wait");
    assert.equal(code, 0, stderr);
    assert.match(stderr, /Deployment\/istio-system\/istiod is made anew/);
    assert.match(stderr, /ClusterRoleBinding\/istiod-clusterrole-istio-system is made anew/);
    assert.match(stderr, /removed ConfigMap\/istio-system\/gone/);
    const before = await versions();
    assert.equal((await mizzen("upgrade", "--set", "profile=minimal", "-y", "--no-wait")).code, 0);
    assert.deepEqual(await versions(), before);
    await purged();

    await server.apply(manifest);
    await purged();
    assert.deepEqual(await everything(), clean);
  });

  test("without validation nothing asks for it", async () => {
    const minimal = ["install", "--set", "profile=minimal", "-y", "--no-wait"];
    assert.equal((await mizzen(...minimal)).code, 0);
    assert.equal((await mizzen(...minimal, "--set", "global.configValidation=false")).code, 0);
    assert.deepEqual(await list("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"), []);
    await purged();
  });

  test("an IstioOperator with a name has its own objects, beside those of the same revision", async () => {
    const clean = await everything();
    await server.kubectl(["create", "namespace", "edge"]);
    const operator = join(folder, "gateways.yaml");
    const components = { ingressGateways: [{ name: "inner", namespace: "edge", k8s: { replicaCount: 2 } }] };
    const spec = { profile: "empty", components };
    writeFileSync(operator, JSON.stringify({ kind: "IstioOperator", metadata: { name: "gateways" }, spec }));
    const gateways = async () => (await everything()).filter((name) => name.includes("/edge/inner"));

    assert.equal((await mizzen("install", "--set", "profile=minimal", "-y", "--no-wait")).code, 0);
    const controlPlane = await everything();
    assert.equal((await mizzen("install", "-f", operator, "-y", "--no-wait")).code, 0);
    assert.equal((await gateways()).length, 6);
    assert.equal((await mizzen("upgrade", "--set", "profile=minimal", "-y", "--no-wait")).code, 0);
    assert.equal((await gateways()).length, 6);

    const wouldBe = await mizzen("uninstall", "-f", operator, "--dry-run");
    assert.equal(wouldBe.stderr.match(/would remove \w+\/edge\/inner/g)?.length, 6);
    assert.equal((await gateways()).length, 6);
    assert.equal((await mizzen("uninstall", "-f", operator, "-y")).code, 0);
    assert.deepEqual(await everything(), controlPlane);

    assert.equal((await mizzen("install", "-f", operator, "-y", "--no-wait")).code, 0);
    await purged();
    await server.kubectl(["delete", "namespace", "edge"]);
    assert.deepEqual(await everything(), clean);
  });

  test("the control plane can do all that it has to with the rights that the chart gives it", async () => {
    await mizzen("install", "--set", "profile=empty", "-y");
    await server.apply(
      "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: v}\nspec: {hosts: [a]}\n",
    );
    const status = "values.pilot.env.PILOT_ENABLE_STATUS=true";
    assert.equal((await mizzen("install", "--set", "profile=minimal", "--set", status, "-y", "--no-wait")).code, 0);
    await hasRights("istiod");
    const token = await tokenOf("istiod");
    const kubeConfig = await server.kubeConfigFor(token, folder);
    const env = { POD_NAMESPACE: "istio-system", PILOT_ENABLE_STATUS: "true" };
    await using plane = new ControlPlaneProcess({ kubeConfig, folder, env });
    const object = async (path: string) => unless404(api.call({ path }));
    const system = "/api/v1/namespaces/istio-system";
    await eventually("its own key", async () => (await object(`${system}/secrets/istio-ca-secret`)) !== undefined);
    await eventually(
      "roots in namespaces",
      async () => (await object("/api/v1/namespaces/default/configmaps/istio-ca-root-cert")) !== undefined,
    );
    const webhooks = "/apis/admissionregistration.k8s.io/v1";
    for (const path of [
      "mutatingwebhookconfigurations/istio-sidecar-injector",
      "validatingwebhookconfigurations/istio-validator-istio-system",
    ]) {
      const bundle = async () => at(await object(`${webhooks}/${path}`), "webhooks", 0, "clientConfig", "caBundle");
      await eventually(`roots in ${path}`, async () => typeof (await bundle()) === "string");
    }
    assert.ok(await object("/apis/coordination.k8s.io/v1/namespaces/istio-system/leases/istio-leader"));
    const own = await server.api(token);
    const authenticate = tokenReviewAuthenticator({ api: own, audiences: ["istio-ca"], trustDomain: () => "t" });
    const caller = await authenticate({ authorization: `Bearer ${await tokenOf("istiod")}`, certificate: undefined });
    assert.ok(caller !== undefined && "caller" in caller, JSON.stringify(caller));
    const reports = async () =>
      (await list(`${system}/configmaps`)).filter(({ metadata }) => metadata.name.startsWith("istio-distribution-"));
    await eventually("what it knows of proxies", async () => (await reports()).length === 1);
    const path = "/apis/networking.istio.io/v1/namespaces/default/virtualservices/v/status";
    await own.call({ method: "PATCH", path, body: { status: { conditions: [] } }, contentType: MERGE_PATCH });
    await eventually("it has read everything", async () => plane.isReady());
    assert.doesNotMatch(plane.text(), /forbidden|add to the ClusterRole/i);
    await plane.end();
    await purged();
  });

  /** Who is asked about rights hears of new roles and bindings a moment after they were written. */
  async function hasRights(account: string): Promise<void> {
    const as = ["auth", "can-i", "--as", `system:serviceaccount:istio-system:${account}`, "-n", "istio-system"];
    for (const right of [
      ["list", "pods", "--all-namespaces"],
      ["create", "leases.coordination.k8s.io"],
    ]) {
      await eventually(`may ${right.join(" ")}`, () =>
        server.kubectl([...as, ...right]).then(
          () => true,
          () => false,
        ),
      );
    }
  }

  /** A token of an account of the mesh, for the API server and for the control plane. */
  async function tokenOf(account: string): Promise<string> {
    const audiences = ["https://kubernetes.default.svc.cluster.local", "istio-ca"];
    const { status } = await api.call({
      method: "POST",
      path: `/api/v1/namespaces/istio-system/serviceaccounts/${account}/token`,
      body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { audiences } },
    });
    return String(at(status, "token"));
  }

  test("two revisions live side by side, and one leaves without the other", async () => {
    assert.equal((await mizzen("install", "-y", "--no-wait")).code, 0);
    const alone = await everything();
    const taken = await mizzen("install", "--revision", "canary", "-y", "--no-wait");
    assert.equal(taken.code, 1);
    assert.match(
      taken.stderr,
      /istio-ingressgateway is there and not ours but of revision default: leave it there by --set/,
    );
    const canary = await mizzen("install", "--revision", "canary", "--set", "profile=minimal", "-y", "--no-wait");
    assert.equal(canary.code, 0, canary.stderr);
    assert.ok((await everything()).includes("deployments/istio-system/istiod-canary"));
    assert.equal((await mizzen("uninstall", "--revision", "canary", "-y")).code, 0);
    assert.deepEqual(await everything(), alone);
    assert.match((await mizzen("uninstall", "--revision", "canary", "-y")).stderr, /there was nothing to remove/);
  });

  test("a namespace that was there before stays, with all that is not ours", async () => {
    await server.kubectl(["create", "namespace", "mine"]);
    await server.kubectl(["-n", "mine", "create", "configmap", "own"]);
    const there = await everything();
    const settings = ["-n", "mine", "--set", "profile=minimal", "--revision", "third"];
    assert.equal((await mizzen("install", ...settings, "-y", "--no-wait")).code, 0);
    assert.ok((await everything()).includes("deployments/mine/istiod-third"));
    assert.equal((await mizzen("uninstall", "--revision", "third", "-y")).code, 0);
    assert.deepEqual(await everything(), there);
    assert.equal((await mizzen("uninstall", "--purge", "-n", "mine", "-y")).code, 0);
    const left = (await everything()).filter((name) => /mine/.test(name));
    assert.deepEqual(left, ["configmaps/mine/own", "namespaces//mine"]);
  });

  test("a purge finds the namespaces of control planes by itself", async () => {
    const there = await everything();
    await server.kubectl(["create", "namespace", "mine-too"]);
    for (const [namespace, revision] of [
      ["mine-too", "one"],
      ["made", "two"],
    ] as const) {
      const settings = ["-n", namespace, "--set", "profile=minimal", "--revision", revision];
      assert.equal((await mizzen("install", ...settings, "-y", "--no-wait")).code, 0);
      // What a control plane writes.
      await server.kubectl(["-n", namespace, "create", "secret", "generic", "istio-ca-secret"]);
    }
    await purged();
    await server.kubectl(["delete", "namespace", "mine-too", "--wait=false"]);
    const left = (await everything()).filter((name) => !there.includes(name) && !/^namespaces\/\/mine-too$/.test(name));
    assert.deepEqual(left, []);
  });

  test("a purge takes the roots of the mesh from namespaces under whatever name they have", async () => {
    const map = (name: string, data: object, labels: object = { "istio.io/config": "true" }) =>
      JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default", labels }, data });
    await server.apply(map("own-roots", { "root-cert.pem": "x" }));
    await server.apply(map("own-revoked", { "ca-crl.pem": "" }));
    await server.apply(map("mine", { "root-cert.pem": "x", more: "y" }));
    await server.apply(map("mine-too", { "root-cert.pem": "x" }, {}));
    await purged();
    const left = (await list("/api/v1/namespaces/default/configmaps")).map(({ metadata }) => metadata.name);
    assert.deepEqual(left.sort(), ["kube-root-ca.crt", "mine", "mine-too"]);
    await server.kubectl(["delete", "configmap", "mine", "mine-too"]);
  });

  test("a purge takes what Helm made of the chart, and says that its definitions of kinds stay", async () => {
    await purged();
    const other = { "operator.istio.io/component": "Pilot", "helm.sh/chart": "istiod-1.29.6" };
    const istio = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "istio-real", labels: other } };
    await server.kubectl(["create", "namespace", "istio-system"]);
    const there = await everything();
    const ofChart = [...(await installed("profile=demo")).values()].filter(({ kind }) => kind !== "Namespace");
    const byHelm = ofChart.map(withoutOwner);
    await server.kubectl(["apply", "--server-side", "-f", join(MANIFESTS, "chart/crds")]);
    await server.apply([...byHelm, istio].map((object) => JSON.stringify(object)).join("\n---\n"));
    const { code, stderr } = await mizzen("uninstall", "--purge", "-y");
    assert.equal(code, 0, stderr);
    assert.match(stderr, /removed Deployment\/istio-system\/istiod\n/);
    assert.match(stderr, /1\d definitions of kinds stay, with all configuration: .*kubectl delete -f/);
    const left = (await everything()).filter((name) => !there.includes(name) && !name.startsWith("customresource"));
    assert.deepEqual(left, ["configmaps/default/istio-real"]);
    await server.kubectl(["delete", "configmap", "istio-real"]);
    await server.kubectl(["delete", "-f", join(MANIFESTS, "chart/crds")]);
    assert.doesNotMatch((await mizzen("uninstall", "--purge", "-y")).stderr, /stay/);
  });

  test("it does not wait for ever, and says for what", async () => {
    const { code, stderr } = await mizzen("install", "--set", "profile=minimal", "-y", "--readiness-timeout=1s");
    assert.equal(code, 1);
    assert.match(stderr, /not ready in 1 s: Deployment\/istio-system\/istiod: /);
  });

  test("what stands in the way is told before anything is changed", async () => {
    await server.kubectl(["create", "namespace", "other"]);
    await server.kubectl(["-n", "other", "create", "deployment", "istiod", "--image=x"]);
    const { code, stderr } = await mizzen("install", "-n", "other", "-y");
    assert.equal(code, 1);
    assert.match(stderr, /in the way: Deployment\/other\/istiod is there and not ours/);
    const maps = await list("/api/v1/namespaces/other/configmaps");
    assert.deepEqual(
      maps.filter(({ metadata }) => metadata.name.startsWith("istio")),
      [],
    );
  });

  test("rights that are missing are named, with the rule to add, and precheck tells the same", async () => {
    await server.kubectl(["-n", "other", "create", "serviceaccount", "somebody"]);
    const config = JSON.parse(readFileSync(server.kubeConfig, "utf8"));
    config.users[0].user = { token: (await server.kubectl(["-n", "other", "create", "token", "somebody"])).trim() };
    const kubeConfig = join(folder, "somebody");
    writeFileSync(kubeConfig, JSON.stringify(config));
    for (const args of [["install", "-y"], ["precheck"]]) {
      const { code, stderr } = await mizzen(...args, "-c", kubeConfig, "--set", "profile=empty");
      assert.equal(code, 1);
      assert.match(stderr, /you may not create, patch, list, delete namespaces; a rule.*resources: \[namespaces\]/);
    }
    const free = await mizzen("precheck");
    assert.deepEqual([free.code, free.stderr], [0, ""]);
  });

  test("an API server that goes away in the middle is waited for, and what is wanted is there in the end", async () => {
    const account = "/api/v1/namespaces/istio-system/serviceaccounts/istio-ingressgateway-service-account";
    await unless404(api.call({ method: "DELETE", path: account }));
    const running = mizzen("install", "-y", "--no-wait");
    await eventually("it began", async () => (await unless404(api.call({ path: account }))) !== undefined);
    await server.stop("kube-apiserver");
    await server.start();
    const { code, stderr } = await running;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^trying again: .*\n(.|\n)*installed: revision "default"/m);
  });

  test("an uninstalled revision leaves no tag of its own, and a purge says when nothing was left", async () => {
    assert.equal((await mizzen("uninstall", "-y")).code, 0);
    assert.match((await mizzen("tag", "list")).stdout, /^No Istio revision tags found/);
    assert.doesNotMatch((await mizzen("uninstall", "--purge", "-y")).stderr, /there was nothing to remove/);
    assert.match((await mizzen("uninstall", "--purge", "-y")).stderr, /there was nothing to remove/);
  });
});

function withoutOwner(object: RawObject): RawObject {
  const { [OWNER_LABEL]: _, ...labels } = object.metadata.labels ?? {};
  return { ...object, metadata: { ...object.metadata, labels } };
}

async function unless404<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (problem) {
    if (problem instanceof ApiError && problem.status === 404) return undefined;
    throw problem;
  }
}
