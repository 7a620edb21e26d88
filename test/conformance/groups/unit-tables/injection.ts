/** Tables about injection. */
import { join } from "node:path";
import { fromValue, toValue } from "@mizzen/go-template/value";
import { checkAnnotations, checkQuantity } from "#inject/check-annotations.ts";
import { injectPod } from "#inject/inject-pod.ts";
import { DEFAULT_VALUES } from "#inject/injector/default-values.ts";
import { stockConfig } from "#inject/injector/inject-settings.ts";
import { injectorOf } from "#inject/injector/injector.ts";
import { proxyImage } from "#inject/injector/proxy-image.ts";
import { appendMultusNetwork, withoutNil } from "#inject/injector/template-functions.ts";
import { injectionValues } from "#inject/injector/values.ts";
import { cleanProxyConfig } from "#inject/mesh/clean-proxy-config.ts";
import { injectionMesh } from "#inject/mesh/injection-mesh.ts";
import { decideInjection, IGNORED_NAMESPACES } from "#inject/pod/decision.ts";
import { ownerOf } from "#inject/pod/owner.ts";
import {
  type EnvironmentVariable,
  findContainer,
  type Metadata,
  type PodSpec,
  PROXY_CONTAINER,
  readPod,
} from "#inject/pod/pod.ts";
import { appProbers, rewriteProbes, rewritesProbes, withProbers } from "#inject/probes.ts";
import { mergesMetrics } from "#inject/prometheus.ts";
import { parseStatus } from "#inject/reinjection.ts";
import { variablesOfPath } from "#inject/webhook/inject-path.ts";
import {
  injectedRevision,
  matchWebhooks,
  refusesInjection,
  type WebhookConfiguration,
} from "#inject/webhook/webhook-match.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import type { LabelSelector } from "#model/labels/label-selector.ts";
import { handleWebhook } from "#webhooks/handle.ts";
import { compareJson } from "../../compare.ts";
import { type Group, readText } from "../../harness.ts";
import { byRow, type RowCheck, unitTables } from "../../unit-tables.ts";

type Labels = Readonly<Record<string, string>>;
interface ObjectWithMetadata {
  readonly metadata: Metadata;
}

const STATUS_PORT = 15020;
const PACKAGES = ["pkg/kube/inject", "istioctl/pkg/checkinject", "istioctl/pkg/injector"];

const FUNCTIONS: Readonly<Record<string, RowCheck>> = {
  'appendMultusNetwork(existing, "istio-cni")': byRow<{ in: string; want: string }>(({ in: given, want }) => {
    const once = appendMultusNetwork(given, "istio-cni");
    return compareJson([once, appendMultusNetwork(once, "istio-cni")], [want, want]);
  }),
  "protoToJSON(proxyConfig)": byRow<{ proxy: object; expect: string }>(({ proxy, expect }) =>
    compareJson(cleanProxyConfig(proxy), JSON.parse(expect)),
  ),
  "DumpAppProbers(pod, 15020)": byRow<{ pod: object; expected: string }>(({ pod, expected }) =>
    compareJson(JSON.parse(appProbers(readPod(pod), STATUS_PORT) ?? "null"), JSON.parse(expected)),
  ),
  "enablePrometheusMerge(mesh, annotations)": byRow<{
    mesh?: { enablePrometheusMerge?: boolean };
    anno?: Labels;
    want: boolean;
  }>(({ mesh = {}, anno = {}, want }) => compareJson(mergesMetrics(anno, mesh.enablePrometheusMerge), want)),
  FindSidecar: byRow<{ containers: object; want: unknown }>(({ containers, want }) =>
    compareJson(findContainer(readPod(containers), PROXY_CONTAINER) ?? null, want ?? null),
  ),
  "injectRequired(ignored namespaces, config, podSpec, metadata)": byRow<{
    config: { Policy: string; NeverInjectSelector?: LabelSelector[]; AlwaysInjectSelector?: LabelSelector[] };
    meta: Metadata;
    podSpec: PodSpec;
    want: boolean;
  }>(({ config, meta, podSpec, want }) => {
    const { Policy, NeverInjectSelector = [], AlwaysInjectSelector = [] } = config;
    const policy = {
      policy: Policy,
      neverInjectSelector: NeverInjectSelector,
      alwaysInjectSelector: AlwaysInjectSelector,
    };
    return compareJson(decideInjection({ metadata: meta, spec: podSpec }, policy).inject, want);
  }),
  mergeOrAppendProbers: byRow<{
    in: EnvironmentVariable[] | null;
    perviouslyInjected: boolean;
    probers: string;
    want: EnvironmentVariable[];
  }>(({ in: env, perviouslyInjected, probers, want }) =>
    compareJson(withProbers(env ?? [], probers, perviouslyInjected), want),
  ),
  "native sidecar decision": byRow<{ annotations: Labels; nativeSidecar: boolean; expectContainer: string }>(
    ({ annotations, nativeSidecar, expectContainer }) =>
      compareJson(placeOfProxy(annotations, nativeSidecar), expectContainer),
  ),
  "omitNil template helper": byRow<{ in: unknown; want: unknown }>(({ in: given, want }) =>
    compareJson(fromValue(withoutNil(toValue(given)) ?? null), want ?? null),
  ),
  "parseInjectEnvs(url path)": byRow<{ in: string; want: Labels }>(({ in: path, want }) =>
    compareJson(variablesOfPath(path), want),
  ),
  parseStatus: byRow<{ status: string; want: { Containers?: Named[] | null; InitContainers?: Named[] | null } }>(
    ({ status, want }) => {
      const { containers = [], initContainers = [] } = parseStatus(status) ?? {};
      const names = (list: Named[] | null | undefined) => (list ?? []).map(({ name }) => name);
      return compareJson([containers, initContainers], [names(want.Containers), names(want.InitContainers)]);
    },
  ),
  "patchRewriteProbe(pod, 15020)": byRow<{ pod: object; expected: object }>(({ pod, expected }) =>
    compareJson(readPod(rewriteProbes(readPod(pod), STATUS_PORT)), readPod(expected)),
  ),
  "ProxyImage(values, proxyConfig.image, annotations)": byRow<{
    v: object;
    pc?: { imageType?: string };
    ann?: Labels;
    want: string;
  }>(({ v, pc, ann = {}, want }) =>
    compareJson(
      proxyImage({ values: injectionValues(v), imageType: pc && (pc.imageType ?? ""), annotations: ann }),
      want,
    ),
  ),
  "POST /inject": byRow<{ body?: string; contentType: string; wantAllowed: boolean; wantStatusCode: number }>(
    ({ body = "", contentType, wantAllowed, wantStatusCode }) => {
      const answer = handleWebhook({ path: "/inject", contentType, body }, webhookContext());
      return compareJson([answer.status, isAllowed(answer.body)], [wantStatusCode, wantAllowed]);
    },
  ),
  ShouldRewriteAppHTTPProbers: byRow<{ annotations?: Labels; specSetting: boolean; expected: boolean }>(
    ({ annotations = {}, specSetting, expected }) => compareJson(rewritesProbes(annotations, specSetting), expected),
  ),
  "ignored namespaces": byRow<{ ns: string; expected: boolean }>(({ ns, expected }) =>
    compareJson(IGNORED_NAMESPACES.has(ns), expected),
  ),
  validateAnnotations: byRow<{ annotations: Labels; wantErr: boolean }>(({ annotations, wantErr }) =>
    compareJson(checkAnnotations(annotations).length > 0, wantErr),
  ),
  validateResourceQuantity: byRow<{ value: string; wantErr: boolean }>(({ value, wantErr }) =>
    compareJson(checkQuantity(value) !== undefined, wantErr),
  ),
  "injectionDisabled(pod)": byRow<{ pod: ObjectWithMetadata; expected: boolean }>(({ pod, expected }) =>
    compareJson(refusesInjection(pod.metadata), expected),
  ),
  extractRevisionFromPod: byRow<{ pod: ObjectWithMetadata; expectedRevision: string }>(({ pod, expectedRevision }) =>
    compareJson(injectedRevision(pod.metadata), expectedRevision),
  ),
};

interface Named {
  readonly name: string;
}

interface CheckInjectRow {
  readonly pod: ObjectWithMetadata;
  readonly ns: ObjectWithMetadata;
  readonly expectedMessages: readonly {
    readonly Name: string;
    readonly Revision: string;
    readonly Injected?: boolean;
    readonly Reason: string;
  }[];
}

export const injectionTables: Group = {
  name: "unit tables: injection",
  cases: async (folder) => {
    const checkInject = byRow<CheckInjectRow>(async ({ pod, ns, expectedMessages }) => {
      const ours = matchWebhooks(await webhooksOf(folder), pod.metadata.labels ?? {}, ns.metadata.labels ?? {});
      const want = expectedMessages.map(({ Name, Revision, Injected = false, Reason }) => ({
        name: Name,
        revision: Revision,
        injected: Injected,
        reason: Reason,
      }));
      return compareJson(ours, want);
    });
    const functions = { ...FUNCTIONS, "istioctl x check-inject analysis": checkInject };
    return unitTables("unit tables: injection", PACKAGES, functions).cases(folder);
  },
};

async function webhooksOf(folder: string): Promise<readonly WebhookConfiguration[]> {
  const at = join(folder, "istioctl/pkg/checkinject/testdata/check-inject");
  const names = ["default-injector.yaml", "rev-16-injector.yaml", "never-match-injector.yaml"];
  const texts = await Promise.all(names.map((name) => readText(at, name)));
  return texts.flatMap((text) => readDocuments(text ?? "").map(({ value }) => value as WebhookConfiguration));
}

function stockInjector() {
  const values = injectionValues(DEFAULT_VALUES);
  return injectorOf({ config: stockConfig(DEFAULT_VALUES), mesh: injectionMesh({}), values, revision: "" });
}

function placeOfProxy(annotations: Labels, nativeSidecars: boolean): string {
  const injector = stockInjector();
  const pod = readPod({ metadata: { name: "p", annotations }, spec: { containers: [{ name: "app" }] } });
  const { spec } = injectPod({
    pod,
    owner: ownerOf(pod),
    proxyConfig: injector.mesh.defaultConfig,
    nativeSidecars,
    proxyEnvironment: {},
    namespaceAnnotations: undefined,
    injector,
  });
  return spec.initContainers?.some(({ name }) => name === PROXY_CONTAINER) ? "initContainers" : "containers";
}

function webhookContext() {
  const injector = stockInjector();
  return {
    injection: () => ({ injector, proxyConfigs: [], nativeSidecars: () => false }),
    count: () => {},
    log: () => {},
  };
}

function isAllowed(body: string): boolean {
  try {
    const { response } = JSON.parse(body) as { response?: { allowed?: boolean } };
    return response?.allowed === true;
  } catch {
    return false; // an error of HTTP is no review
  }
}
