/** What a person asks for, and the values of the chart that come of it. */
import { join } from "node:path";
import { isRecord } from "#lib/json/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type Chart, namesIn, readChart, readYaml } from "./chart.ts";
import { checkValues } from "./values/check-values.ts";
import type { ComponentPatch } from "./values/component-patches.ts";
import { type Components, componentsOf, gatewayPlan } from "./values/components.ts";
import { askedBy, askedTogether, NOTHING_ASKED, withSet } from "./values/istio-operator.ts";
import { overlaid, type Values } from "./values/values.ts";

export interface InstallSettings {
  /** The folder with `chart/` and `profiles/`. */
  readonly manifests: string;
  /** Undefined: what the values say. */
  readonly namespace?: string | undefined;
  /** Empty: what the values say. */
  readonly revision: string;
  /** Files with values, or with an IstioOperator; later ones count more. */
  readonly files: readonly string[];
  /** `name=value`, over everything else. */
  readonly set: readonly string[];
}

/** Everything that decides the objects of an installation. */
export interface Resolved {
  readonly chart: Chart;
  readonly profile: string;
  readonly values: Values;
  readonly namespace: string;
  /** `default`, or the name of another. */
  readonly revision: string;
  /** What is laid over the objects that the chart makes. */
  readonly patches: readonly ComponentPatch[];
  /** What has no effect, one line each. */
  readonly warnings: readonly string[];
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** The chart's values, those of the profile, of files and of `--set`, each over the ones before. Throws a MeshError on a mistake. */
export async function resolveSettings(settings: InstallSettings): Promise<Resolved> {
  const { manifests, files, set } = settings;
  const chart = await readChart(join(manifests, "chart"));
  const given = await Promise.all(files.map(async (file) => askedBy(await readYaml(file), file)));
  const { profile: named, values: asked, components } = set.reduce(withSet, given.reduce(askedTogether, NOTHING_ASKED));
  const profile = named || "default";
  const wanted = componentsOf(components, "--set");
  const parts = installedParts(wanted, {
    asked,
    values: overlaid(chart.values, await profileValues(manifests, profile)),
  });
  const problems = checkValues(asked, parts.values);
  const errors = problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0) {
    throw new MeshError("INSTALL_INVALID", errors.map(({ field, message }) => `${field}: ${message}`).join("; "));
  }
  const revision = nameOf(settings.revision || String(asked.revision ?? "") || "default", "revision");
  const namespace = nameOf(settings.namespace ?? namespaceOf(overlaid(parts.values, asked)), "namespace");
  refuseOtherNamespace(wanted.namespace, namespace);
  const over = { revision: revision === "default" ? "" : revision, global: { istioNamespace: namespace } };
  return {
    chart,
    profile,
    namespace,
    revision,
    values: [asked, over].reduce(overlaid, parts.values),
    patches: parts.patches,
    warnings: problems.map(({ field, message }) => `${field}: ${message}`),
  };
}

interface Base {
  readonly asked: Values;
  /** Of chart and profile. */
  readonly values: Values;
}

/** The values of chart and profile with what components say, and with models of the gateways that are asked for. */
function installedParts({ values: said, gateways, patches }: Components, { asked, values }: Base) {
  const base = [gatewaysOf(asked, values), said].reduce(overlaid, values);
  const plans = Object.entries(gateways).map(([standard, listed]) => {
    for (const { name } of listed) nameOf(name, "gateway");
    const { enabled: _, ...model } = gatewayOf(base, standard);
    return gatewayPlan(standard, listed, overlaid(model, gatewayOf(asked, standard)));
  });
  const planned = plans.map((plan) => ({ gateways: plan.values }));
  return {
    values: planned.reduce(overlaid, base),
    patches: [...patches, ...plans.flatMap((plan) => plan.patches)],
  };
}

function gatewayOf({ gateways }: Values, name: string): Values {
  const gateway = isRecord(gateways) ? gateways[name] : undefined;
  return isRecord(gateway) ? gateway : {};
}

/** The names of all profiles. */
export async function profileNames(manifests: string): Promise<readonly string[]> {
  const files = await namesIn(join(manifests, "profiles"));
  return files.map((file) => file.replace(/\.yaml$/, ""));
}

/** What a profile says over the chart's values. */
async function profileValues(manifests: string, profile: string): Promise<Values> {
  const names = await profileNames(manifests);
  if (!names.includes(profile)) {
    throw new MeshError("INSTALL_INVALID", `there is no profile "${profile}": there are ${names.join(", ")}`);
  }
  return readYaml(join(manifests, "profiles", `${profile}.yaml`));
}

/** Gateways that the chart does not have are like its own, under other names. */
function gatewaysOf(asked: Values, { gateways: known }: Values): Values {
  const own = isRecord(known) ? known : {};
  const gateways = Object.entries(isRecord(asked.gateways) ? asked.gateways : {}).flatMap(([name, gateway]) => {
    if (Object.hasOwn(own, name) || !isRecord(gateway)) return [];
    const model = own[gateway.component === "EgressGateways" ? "istio-egressgateway" : "istio-ingressgateway"];
    const labels = { app: nameOf(name, "gateway"), istio: name.replace(/^istio-/, "") };
    return isRecord(model) ? [[name, { ...model, enabled: true, labels }] as const] : [];
  });
  return { gateways: Object.fromEntries(gateways) };
}

/** All that belongs to a control plane is in one namespace. Istio would leave its account behind in the other. */
function refuseOtherNamespace(wanted: string, namespace: string): void {
  if (wanted === "" || wanted === namespace) return;
  throw new MeshError(
    "INSTALL_INVALID",
    `components.pilot.namespace: "${wanted}", but the mesh is installed into "${namespace}"; say so with --namespace ${wanted} or values.global.istioNamespace`,
  );
}

function namespaceOf({ global }: Values): string {
  return String((isRecord(global) ? global.istioNamespace : undefined) ?? "istio-system");
}

function nameOf(name: string, what: string): string {
  if (NAME.test(name)) return name;
  const rule = "lower case letters, digits and dashes, 63 at most";
  throw new MeshError("INSTALL_INVALID", `${what} "${name}" is no name of Kubernetes: ${rule}`);
}
