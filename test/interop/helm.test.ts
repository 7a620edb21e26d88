/** The chart under Helm itself: the same objects as `mizzen manifest generate` gives. Runs where `HELM` names a Helm. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { readObjects } from "#install/chart.ts";
import { objectChanges } from "#install/difference.ts";
import { MANIFESTS } from "#install/fixture.ts";
import { manifestOf, OWNER_LABEL } from "#install/manifest.ts";
import { resolveSettings } from "#install/settings.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";

const { HELM = "" } = process.env;
const CHART = join(MANIFESTS, "chart");
const run = promisify(execFile);

/** Programs that were not built by a release know no version of Kubernetes. */
const COMMON = ["--kube-version", "1.33.0", "--namespace", "istio-system"];

if (HELM !== "") describe("the chart under Helm", underHelm);

function underHelm(): void {
  for (const [profile, ...set] of [
    ["default"],
    ["demo"],
    ["minimal"],
    ["empty"],
    ["default", "revision=canary", "global.imagePullPolicy=Always", "global.logAsJson=true"],
    ["demo", "sidecarInjectorWebhook.enableNamespacesByDefault=true", "global.multiCluster.enabled=true"],
    [
      "default",
      "pilot.env.A=b",
      "pilot.nodeSelector.kubernetes\\.io/os=linux",
      "global.network=n",
      "global.platform=openshift",
    ],
    [
      "minimal",
      "meshConfig.accessLogFile=/dev/stdout",
      "meshConfig.defaultConfig.concurrency=3",
      "pilot.autoscaleEnabled=false",
    ],
    [
      "default",
      "pilot.autoscaleMin=2",
      "pilot.memory.targetAverageUtilization=70",
      "global.networkPolicy.enabled=true",
    ],
    [
      "default",
      "revision=canary",
      "revisionTags={prod,default}",
      "defaultRevision=canary",
      "global.proxy.tracer=zipkin",
    ],
    ["minimal", "pilot.initContainers[0].name=first", "pilot.jwksResolverExtraRootCA=PEM", "telemetry.enabled=false"],
    ["demo", "gateways.istio-egressgateway.runAsRoot=true", "gateways.istio-ingressgateway.loadBalancerIP=1.2.3.4"],
    [
      "default",
      "compatibilityVersion=1.26",
      "global.externalIstiod=true",
      "gateways.istio-ingressgateway.namespace=edge",
    ],
    ["default", "gateways.istio-ingressgateway.type=NodePort", "gateways.istio-ingressgateway.serviceAnnotations.a=b"],
  ]) {
    test(`${profile} ${set.join(" ")}`, async () => {
      const sets = set.flatMap((one) => ["--set", one]);
      const values = ["--values", join(MANIFESTS, "profiles", `${profile}.yaml`)];
      const { stdout } = await run(HELM, ["template", "istio", CHART, ...COMMON, ...values, ...sets]);
      const settings = { manifests: MANIFESTS, revision: "", files: [], set: [`profile=${profile}`, ...set] };
      const ours = manifestOf(await resolveSettings(settings))
        .filter(isOfChart)
        .map(withoutOwner);
      assert.deepEqual(objectChanges(readObjects(stdout, "helm"), ours), []);
    });
  }

  test("helm lint has nothing against it, and its definitions of kinds are ours", async () => {
    const { stdout } = await run(HELM, ["lint", CHART, ...COMMON]);
    assert.match(stdout, /0 chart\(s\) failed/);
    const shown = readObjects((await run(HELM, ["show", "crds", CHART], { maxBuffer: 1 << 26 })).stdout, "helm");
    const settings = await resolveSettings({ manifests: MANIFESTS, revision: "", files: [], set: ["profile=empty"] });
    const ours = manifestOf(settings).filter(({ kind }) => kind === "CustomResourceDefinition");
    assert.deepEqual(objectChanges(shown, ours.map(withoutOwner)), []);
  });
}

/** Helm makes the namespace, and the kinds are beside the templates. */
function isOfChart({ kind }: RawObject): boolean {
  return kind !== "CustomResourceDefinition" && kind !== "Namespace";
}

function withoutOwner(object: RawObject): RawObject {
  const { [OWNER_LABEL]: _, ...labels } = object.metadata.labels ?? {};
  const { labels: __, ...metadata } = object.metadata;
  return { ...object, metadata: Object.keys(labels).length === 0 ? metadata : { ...metadata, labels } };
}
