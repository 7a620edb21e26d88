/** Injection: files by kube-inject, pods by the webhook, samples. */
import { dirname, join } from "node:path";
import { injectDocuments } from "#inject/inject-documents.ts";
import { stockConfig } from "#inject/injector/inject-settings.ts";
import { InjectionError } from "#inject/injector/injection-error.ts";
import { type Injector, injectorOf } from "#inject/injector/injector.ts";
import { type NativeSidecarMode, usesNativeSidecars } from "#inject/injector/native-sidecars.ts";
import { injectionValues } from "#inject/injector/values.ts";
import { injectionMesh } from "#inject/mesh/injection-mesh.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import type { AdmissionVerdict } from "#webhooks/admission-review.ts";
import { admitPod } from "#webhooks/injection.ts";
import { applyPatch, type Operation } from "../../support/json-patch.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson, readText } from "../harness.ts";

const AT = "pkg/kube/inject";

interface InjectionCase {
  readonly name: string;
  readonly input: string;
  readonly expected: string;
  readonly values: string;
  readonly mesh: string;
  readonly runs: readonly string[];
  /** A file with pods in and out. */
  readonly webhook?: string;
  readonly istiodEnv?: Readonly<Record<string, string>>;
  readonly clusterNodeVersions?: readonly string[];
  readonly expectedErrorContainsLower?: string;
  readonly expectedLogContains?: string;
}

interface InjectionFile {
  readonly cases: readonly InjectionCase[];
  readonly namespaces?: Readonly<Record<string, { readonly annotations?: Readonly<Record<string, string>> }>>;
}

interface WebhookPart {
  readonly part?: string;
  readonly requestNamespace: string;
  readonly inputPod: { readonly metadata?: object };
  readonly expectedPod: unknown;
}

export const kubeInject: Group = {
  name: "kube-inject",
  cases: async (folder) => {
    const file = await readJson<InjectionFile>(folder, AT, "cases.json");
    const cases = (file?.cases ?? []).filter(({ runs }) => runs.includes("kube-inject"));
    return cases.map((one) => ({ name: one.name, check: () => checkFile(folder, one) }));
  },
};

export const webhookPods: Group = {
  name: "webhook pods",
  cases: async (folder) => {
    const file = await readJson<InjectionFile>(folder, AT, "cases.json");
    const cases: Case[] = [];
    for (const one of file?.cases ?? []) {
      if (one.webhook === undefined) continue;
      const parts = (await readJson<readonly WebhookPart[]>(folder, AT, one.webhook)) ?? [];
      for (const part of parts) {
        const name = [one.name, part.part].filter(Boolean).join(" ");
        cases.push({ name, check: () => checkPod(folder, { one, part, namespaces: file?.namespaces ?? {} }) });
      }
    }
    return cases;
  },
};

export const sampleInjection: Group = {
  name: "sample injection",
  cases: async (folder) => {
    const file = await readJson<{
      cases: readonly { name: string; input: string; expected: string; warnings: readonly string[] }[];
    }>(folder, AT, "recorded-samples.json");
    const injector = await injectorFor(folder, { values: "values/default.json", mesh: "mesh/default.json" });
    return (file?.cases ?? []).map(({ name, input, expected, warnings }) => ({
      name,
      check: async () => {
        const result = injectDocuments(await textOf(folder, input), { injector, nativeSidecars: true });
        const said = result.warnings.map((warning) => warning.trim());
        const wanted = documentsOf(await textOf(folder, AT, expected));
        return compareJson([documentsOf(result.text), said], [wanted, warnings.map((warning) => warning.trim())]);
      },
    }));
  },
};

async function checkFile(folder: string, one: InjectionCase): Promise<Outcome> {
  const injector = await injectorFor(folder, one);
  const input = await textOf(folder, AT, one.input);
  const { expectedErrorContainsLower: wantedError, expectedLogContains: wantedLog } = one;
  try {
    const { text, warnings } = injectDocuments(input, { injector, nativeSidecars: isNative(one, undefined) });
    if (wantedError !== undefined) return { differs: () => `no error that contains "${wantedError}"` };
    if (wantedLog !== undefined && !warnings.join("\n").includes(wantedLog))
      return { differs: () => `- ${wantedLog}\n+ ${warnings.join("\n+ ")}` };
    return compareJson(documentsOf(text), documentsOf(await textOf(folder, AT, one.expected)));
  } catch (thrown) {
    if (!(thrown instanceof InjectionError) || wantedError === undefined) throw thrown;
    return thrown.message.toLowerCase().includes(wantedError) ? "passed" : { differs: () => thrown.message };
  }
}

interface PodCase {
  readonly one: InjectionCase;
  readonly part: WebhookPart;
  readonly namespaces: NonNullable<InjectionFile["namespaces"]>;
}

async function checkPod(folder: string, { one, part, namespaces }: PodCase): Promise<Outcome> {
  const injector = await injectorFor(folder, one);
  const isOpenShift = one.istiodEnv?.PLATFORM === "openshift";
  const { verdict } = admitPod(requestFor(part), "/inject", () => ({
    injector,
    proxyConfigs: [],
    nativeSidecars: (nodeName) => isNative(one, nodeName),
    ...(isOpenShift && { namespaceAnnotations: (namespace: string) => namespaces[namespace]?.annotations }),
  }));
  return compareJson(comparablePod(patched(part.inputPod, verdict)), comparablePod(part.expectedPod));
}

function requestFor({ requestNamespace, inputPod }: WebhookPart) {
  const kind = { group: "", version: "v1", kind: "Pod" };
  return {
    uid: "",
    operation: "CREATE",
    namespace: requestNamespace,
    kind,
    resource: "pods",
    object: inputPod,
    dryRun: false,
  };
}

function patched(pod: object, verdict: AdmissionVerdict): unknown {
  if (!verdict.allowed) throw new Error(verdict.message);
  return applyPatch(pod, (verdict.patch ?? []) as readonly Operation[]);
}

async function injectorFor(
  folder: string,
  { values, mesh }: Pick<InjectionCase, "values" | "mesh">,
): Promise<Injector> {
  const given = await readJson<unknown>(folder, AT, values);
  const meshConfig = await readJson<unknown>(folder, AT, mesh);
  const config = stockConfig(given);
  return injectorOf({ config, mesh: injectionMesh(meshConfig), values: injectionValues(given), revision: "" });
}

function isNative({ istiodEnv = {}, clusterNodeVersions }: InjectionCase, nodeName: string | undefined): boolean {
  const mode: NativeSidecarMode =
    istiodEnv.ENABLE_NATIVE_SIDECARS === "true" || istiodEnv.ENABLE_NATIVE_SIDECARS === "false"
      ? istiodEnv.ENABLE_NATIVE_SIDECARS
      : "auto";
  const nodes = clusterNodeVersions?.map((kubeletVersion, index) => ({ name: `node-${index}`, kubeletVersion }));
  return usesNativeSidecars(mode, nodes, nodeName);
}

async function textOf(...path: readonly string[]): Promise<string> {
  const text = await readText(...path);
  if (text === undefined) throw new Error(`no file ${join(...path)} beside ${dirname(join(...path))}`);
  return text;
}

function documentsOf(text: string): unknown {
  return readDocuments(text).map(({ value }) => comparable(value));
}

function comparablePod(pod: unknown): unknown {
  return comparable(pod, new Set(["sidecar.istio.io/status"]));
}

/** Texts that hold JSON are compared as JSON. */
function comparable(value: unknown, left: ReadonlySet<string> = new Set()): unknown {
  if (Array.isArray(value)) return value.map((item) => comparable(item, left));
  if (isRecord(value)) {
    const entries = Object.entries(value).filter(([key]) => !left.has(key));
    return Object.fromEntries(entries.map(([key, item]) => [key, comparable(item, left)]));
  }
  return typeof value === "string" && /^\s*[[{]/.test(value) ? parsed(value) : value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
