/** Values of Istio's charts, each with what it changes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readDocument } from "#lib/yaml/read.ts";
import { at, installed } from "./fixture.ts";

const ISTIOD = "Deployment/istio-system/istiod";
const GATEWAY = "Deployment/istio-system/istio-ingressgateway";
const SERVICE = "Service/istio-system/istio-ingressgateway";
const POD = ["spec", "template", "spec"] as const;
const DISCOVERY = [...POD, "containers", "discovery"] as const;
const PROXY = [...POD, "containers", "istio-proxy"] as const;
const gateway = (value: string) => `gateways.istio-ingressgateway.${value}`;

type Path = readonly (string | number)[];

/** Settings, divided by spaces; the object; the field; what it has to be. */
const EFFECTS: readonly (readonly [set: string, object: string, path: Path, value: unknown])[] = [
  ["pilot.deploymentLabels.a=b", ISTIOD, ["metadata", "labels", "a"], "b"],
  ["pilot.deploymentAnnotations.a=b", ISTIOD, ["metadata", "annotations"], { a: "b" }],
  ["pilot.podLabels.a=b", ISTIOD, ["spec", "template", "metadata", "labels", "a"], "b"],
  ["pilot.podAnnotations.a=b", ISTIOD, ["spec", "template", "metadata", "annotations", "a"], "b"],
  ["pilot.serviceAnnotations.a=b", "Service/istio-system/istiod", ["metadata", "annotations"], { a: "b" }],
  [
    "pilot.serviceAccountAnnotations.a=b",
    "ServiceAccount/istio-system/istiod",
    ["metadata", "annotations"],
    { a: "b" },
  ],
  [
    "pilot.sidecarInjectorWebhookAnnotations.a=b",
    "MutatingWebhookConfiguration/istio-sidecar-injector",
    ["metadata", "annotations"],
    { a: "b" },
  ],
  [
    "pilot.rollingMaxSurge=1 pilot.rollingMaxUnavailable=0",
    ISTIOD,
    ["spec", "strategy", "rollingUpdate"],
    { maxSurge: 1, maxUnavailable: 0 },
  ],
  ["pilot.image=a/b:c", ISTIOD, [...DISCOVERY, "image"], "a/b:c"],
  ["pilot.hub=h pilot.tag=t pilot.variant=v", ISTIOD, [...DISCOVERY, "image"], "h/pilot:t-v"],
  ["pilot.traceSampling=50", ISTIOD, [...DISCOVERY, "env", "PILOT_TRACE_SAMPLING", "value"], "50"],
  ["compatibilityVersion=1.26", ISTIOD, [...DISCOVERY, "env", "ENABLE_NATIVE_SIDECARS", "value"], "false"],
  ["compatibilityVersion=1.27", ISTIOD, [...DISCOVERY, "env", "ENABLE_NATIVE_SIDECARS"], undefined],
  [
    "compatibilityVersion=1.28 pilot.env.DISABLE_TRACK_REMAINING_CB_METRICS=true",
    ISTIOD,
    [...DISCOVERY, "env", "DISABLE_TRACK_REMAINING_CB_METRICS", "value"],
    "true",
  ],
  ["global.externalIstiod=true", ISTIOD, [...DISCOVERY, "env", "EXTERNAL_ISTIOD", "value"], "true"],
  [
    "global.externalIstiod=true pilot.env.EXTERNAL_ISTIOD=false",
    ISTIOD,
    [...DISCOVERY, "env", "EXTERNAL_ISTIOD", "value"],
    "false",
  ],
  ["global.trustBundleName=tb", ISTIOD, [...DISCOVERY, "env", "PILOT_CA_CERT_CONFIGMAP", "value"], "tb"],
  ["pilot.crlConfigMapName=cc", ISTIOD, [...DISCOVERY, "env", "PILOT_CRL_CONFIGMAP", "value"], "cc"],
  ["pilot.traceSampling=0.5", ISTIOD, [...DISCOVERY, "env", "PILOT_TRACE_SAMPLING", "value"], "0.5"],
  ["pilot.env.PILOT_TRACE_SAMPLING=7", ISTIOD, [...DISCOVERY, "env", "PILOT_TRACE_SAMPLING", "value"], "7"],
  [
    "pilot.envVarFrom[0].name=A pilot.envVarFrom[0].valueFrom.secretKeyRef.name=s",
    ISTIOD,
    [...DISCOVERY, "env", "A"],
    { name: "A", valueFrom: { secretKeyRef: { name: "s" } } },
  ],
  [
    "pilot.seccompProfile.type=RuntimeDefault",
    ISTIOD,
    [...DISCOVERY, "securityContext", "seccompProfile"],
    { type: "RuntimeDefault" },
  ],
  ["pilot.tolerations[0].key=k", ISTIOD, [...POD, "tolerations", 1], { key: "k" }],
  ["pilot.topologySpreadConstraints[0].maxSkew=1", ISTIOD, [...POD, "topologySpreadConstraints"], [{ maxSkew: 1 }]],
  ["pilot.initContainers[0].name=a-{{.Release.Name}}", ISTIOD, [...POD, "initContainers"], [{ name: "a-istio" }]],
  ["pilot.volumes[0].name=v", ISTIOD, [...POD, "volumes", "v"], { name: "v" }],
  ["pilot.volumeMounts[0].name=v", ISTIOD, [...DISCOVERY, "volumeMounts", "v"], { name: "v" }],
  [
    "pilot.jwksResolverExtraRootCA=PEM",
    ISTIOD,
    [...DISCOVERY, "volumeMounts", "extracacerts", "mountPath"],
    "/cacerts",
  ],
  [
    "pilot.jwksResolverExtraRootCA=PEM",
    "ConfigMap/istio-system/pilot-jwks-extra-cacerts",
    ["data"],
    { "extra.pem": "PEM" },
  ],
  [
    "pilot.ipFamilyPolicy=SingleStack pilot.ipFamilies[0]=IPv6",
    "Service/istio-system/istiod",
    ["spec", "ipFamilies"],
    ["IPv6"],
  ],
  [
    "pilot.trafficDistribution=PreferClose",
    "Service/istio-system/istiod",
    ["spec", "trafficDistribution"],
    "PreferClose",
  ],
  ["pilot.resources=null", ISTIOD, [...DISCOVERY, "resources"], { requests: { cpu: "10m" } }],
  [
    "pilot.memory.targetAverageUtilization=70",
    "HorizontalPodAutoscaler/istio-system/istiod",
    ["spec", "metrics", 1, "resource", "name"],
    "memory",
  ],
  [
    "pilot.autoscaleBehavior.scaleDown.stabilizationWindowSeconds=9",
    "HorizontalPodAutoscaler/istio-system/istiod",
    ["spec", "behavior"],
    { scaleDown: { stabilizationWindowSeconds: 9 } },
  ],
  ["", "PodDisruptionBudget/istio-system/istiod", [], undefined],
  ["pilot.autoscaleMin=2", "PodDisruptionBudget/istio-system/istiod", ["spec", "minAvailable"], 1],
  [
    "pilot.autoscaleMin=2 pdb.maxUnavailable=1",
    "PodDisruptionBudget/istio-system/istiod",
    ["spec", "maxUnavailable"],
    1,
  ],
  [
    "pilot.autoscaleMin=2 pdb.maxUnavailable=1",
    "PodDisruptionBudget/istio-system/istiod",
    ["spec", "minAvailable"],
    undefined,
  ],
  [
    "pilot.autoscaleMin=2 global.defaultPodDisruptionBudget.enabled=false",
    "PodDisruptionBudget/istio-system/istiod",
    [],
    undefined,
  ],
  ["pilot.autoscaleEnabled=false pilot.replicaCount=3", ISTIOD, ["spec", "replicas"], 3],
  ["global.priorityClassName=high", ISTIOD, [...POD, "priorityClassName"], "high"],
  ["global.priorityClassName=high", GATEWAY, [...POD, "priorityClassName"], "high"],
  ["global.defaultNodeSelector.disk=ssd", GATEWAY, [...POD, "nodeSelector"], { disk: "ssd" }],
  ["global.defaultTolerations[0].key=k", GATEWAY, [...POD, "tolerations"], [{ key: "k" }]],
  ["global.logging.level=", ISTIOD, [...DISCOVERY, "args", 2], "--domain"],
  ["global.istiod.enableAnalysis=true", ISTIOD, [...DISCOVERY, "env", "PILOT_ENABLE_ANALYSIS", "value"], "true"],
  [
    "global.networkPolicy.enabled=true",
    "NetworkPolicy/istio-system/istiod",
    ["spec", "ingress", 0, "ports", 0, "port"],
    15017,
  ],
  [
    "global.networkPolicy.enabled=true",
    "NetworkPolicy/istio-system/istio-ingressgateway",
    ["spec", "ingress", 1, "ports", 1, "port"],
    8080,
  ],
  [
    "global.imagePullSecrets[0]=s",
    "ServiceAccount/istio-system/istio-ingressgateway-service-account",
    ["imagePullSecrets"],
    [{ name: "s" }],
  ],
  ["global.trustBundleName=tb", ISTIOD, [...POD, "volumes", "istio-csr-ca-configmap", "configMap", "name"], "tb"],
  ["global.trustBundleName=tb", GATEWAY, [...POD, "volumes", "istiod-ca-cert", "configMap", "name"], "tb"],
  ["global.omitSidecarInjectorConfigMap=true", "ConfigMap/istio-system/istio-sidecar-injector", [], undefined],
  ["global.mountMtlsCerts=true", GATEWAY, [...PROXY, "volumeMounts", "istio-certs", "mountPath"], "/etc/certs"],
  ["global.sts.servicePort=15463", GATEWAY, [...PROXY, "args", 7], "--stsPort=15463"],
  ["ownerName=me", ISTIOD, ["metadata", "labels", "install.operator.istio.io/owning-resource"], "me"],
  [
    "meshConfig.enablePrometheusMerge=false",
    GATEWAY,
    ["spec", "template", "metadata", "annotations", "prometheus.io/port"],
    undefined,
  ],
  ["meshConfig.defaultConfig.proxyMetadata.A=b", GATEWAY, [...PROXY, "env", "A", "value"], "b"],
  ["global.platform=openshift", GATEWAY, [...POD, "securityContext"], { runAsNonRoot: true }],
  [
    "revision=canary",
    GATEWAY,
    ["spec", "template", "metadata", "labels", "service.istio.io/canonical-revision"],
    "canary",
  ],
  [gateway("runAsRoot=true"), GATEWAY, [...POD, "securityContext"], undefined],
  [gateway("runAsRoot=true"), GATEWAY, [...PROXY, "securityContext"], undefined],
  [gateway("tag=t"), GATEWAY, [...PROXY, "image"], "docker.io/mizzen/proxyv2:t"],
  [gateway("rollingMaxSurge=1"), GATEWAY, ["spec", "strategy", "rollingUpdate", "maxSurge"], 1],
  [
    gateway("serviceAccount.annotations.a=b"),
    "ServiceAccount/istio-system/istio-ingressgateway-service-account",
    ["metadata", "annotations"],
    { a: "b" },
  ],
  [gateway("loadBalancerIP=1.2.3.4"), SERVICE, ["spec", "loadBalancerIP"], "1.2.3.4"],
  [gateway("loadBalancerSourceRanges[0]=10.0.0.0/8"), SERVICE, ["spec", "loadBalancerSourceRanges"], ["10.0.0.0/8"]],
  [gateway("externalTrafficPolicy=Local"), SERVICE, ["spec", "externalTrafficPolicy"], "Local"],
  [gateway("ipFamilies[0]=IPv6"), SERVICE, ["spec", "ipFamilies"], ["IPv6"]],
  [
    `${gateway("ingressPorts[0].port=99")} ${gateway("ingressPorts[0].name=x")}`,
    SERVICE,
    ["spec", "ports", "x", "port"],
    99,
  ],
  [gateway("customService=true"), SERVICE, [], undefined],
  [gateway("additionalContainers[0].name=more"), GATEWAY, [...POD, "containers", "more"], { name: "more" }],
  [
    `${gateway("configVolumes[0].name=c")} ${gateway("configVolumes[0].configMapName=m")} ${gateway("configVolumes[0].mountPath=/c")}`,
    GATEWAY,
    [...POD, "volumes", "c", "configMap", "name"],
    "m",
  ],
  [
    `global.network=n ${gateway("env.ISTIO_META_NETWORK=own")}`,
    GATEWAY,
    [...PROXY, "env", "ISTIO_META_NETWORK", "value"],
    "own",
  ],
  [gateway("autoscaleMin=2"), "PodDisruptionBudget/istio-system/istio-ingressgateway", ["spec", "minAvailable"], 1],
];

for (const [set, name, path, value] of EFFECTS)
  test(`${set || "nothing set"}: ${name} ${path.join(".")}`, async () => {
    const objects = await installed(...set.split(" ").filter((one) => one !== ""));
    assert.deepEqual(at(objects.get(name), ...path), value);
  });

const MESHES: readonly (readonly [set: string, path: Path, value: unknown])[] = [
  ["", ["trustDomain"], "cluster.local"],
  ["global.proxy.clusterDomain=my.local", ["trustDomain"], "cluster.local"],
  ["", ["defaultProviders"], { metrics: ["prometheus"] }],
  ["telemetry.enabled=false", ["defaultProviders"], undefined],
  ["telemetry.v2.prometheus.enabled=false", ["defaultProviders"], undefined],
  ["meshConfig.defaultProviders.tracing[0]=t", ["defaultProviders"], { tracing: ["t"] }],
  ["global.meshID=m", ["defaultConfig", "meshId"], "m"],
  ["global.variant=debug", ["defaultConfig", "image"], { imageType: "debug" }],
  ["global.proxy.tracer=zipkin", ["defaultConfig", "tracing"], { zipkin: { address: "zipkin.istio-system:9411" } }],
  ["global.proxy.tracer=datadog", ["defaultConfig", "tracing"], { datadog: { address: "$(HOST_IP):8126" } }],
  [
    "global.proxy.tracer=zipkin global.tracer.zipkin.address=z:1",
    ["defaultConfig", "tracing"],
    { zipkin: { address: "z:1" } },
  ],
  ["revision=r", ["defaultConfig", "discoveryAddress"], "istiod-r.istio-system.svc:15012"],
];

for (const [set, path, value] of MESHES)
  test(`${set || "nothing set"}: mesh config ${path.join(".")}`, async () => {
    const objects = await installed(...set.split(" ").filter((one) => one !== ""));
    const maps = [...objects.values()].filter(
      ({ kind, data }) => kind === "ConfigMap" && at(data, "mesh") !== undefined,
    );
    assert.deepEqual(at(readDocument(String(at(maps[0], "data", "mesh"))).value, ...path), value);
  });

for (const set of ["global.proxy.tracer=guess", "global.pilotCertProvider=kubernetes"])
  test(`${set} is refused`, async () => {
    await assert.rejects(installed(set), /is none of/);
  });

test("a gateway that is injected says only what is special to it", async () => {
  const settings = ["injectionTemplate=gateway", "env.A=b", "secretVolumes[0].name=s", "secretVolumes[0].mountPath=/s"];
  const objects = await installed(...settings.map(gateway), gateway("secretVolumes[0].secretName=keys"));
  const template = at(objects.get(GATEWAY), "spec", "template");
  assert.equal(at(template, "metadata", "labels", "sidecar.istio.io/inject"), "true");
  assert.equal(at(template, "metadata", "annotations", "inject.istio.io/templates"), "gateway");
  const [proxy] = at(template, "spec", "containers") as readonly object[];
  assert.deepEqual(Object.keys(proxy ?? {}), [
    "name",
    "image",
    "ports",
    "resources",
    "securityContext",
    "env",
    "volumeMounts",
  ]);
  assert.equal(at(proxy, "image"), "auto");
  assert.deepEqual(at(proxy, "env"), [
    { name: "ISTIO_META_UNPRIVILEGED_POD", value: "true" },
    { name: "A", value: "b" },
  ]);
  assert.deepEqual(at(proxy, "volumeMounts"), [{ name: "s", mountPath: "/s", readOnly: true }]);
  assert.deepEqual(at(template, "spec", "volumes"), [{ name: "s", secret: { secretName: "keys", optional: true } }]);
});
