/** What a person asks for, and the values of the chart that come of it. */
import { join } from "node:path";
import { isRecord } from "#lib/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type Chart, namesIn, readChart, readYaml } from "./chart.ts";
import { checkValues } from "./check-values.ts";
import { chartValues } from "./istio-operator.ts";
import { overlaid, type Values, withSet } from "./values.ts";

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
  /** What has no effect, one line each. */
  readonly warnings: readonly string[];
}

const NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** The chart's values, those of the profile, of files and of `--set`, each over the ones before. Throws a MeshError on a mistake. */
export async function resolveSettings(settings: InstallSettings): Promise<Resolved> {
  const { manifests, files, set } = settings;
  const chart = await readChart(join(manifests, "chart"));
  const given = await Promise.all(files.map(async (file) => chartValues(await readYaml(file), file)));
  const { profile: named, ...asked } = [...given, chartValues(set.reduce(withSet, {}), "--set")].reduce(overlaid, {});
  const profile = String(named ?? "default");
  const base = [await profileValues(manifests, profile), gatewaysOf(asked, chart.values)].reduce(
    overlaid,
    chart.values,
  );
  const problems = checkValues(asked, base);
  const errors = problems.filter(({ severity }) => severity === "error");
  if (errors.length > 0) {
    throw new MeshError("INSTALL_INVALID", errors.map(({ field, message }) => `${field}: ${message}`).join("; "));
  }
  const revision = nameOf(settings.revision || String(asked.revision ?? "") || "default", "revision");
  const namespace = nameOf(settings.namespace ?? namespaceOf(overlaid(base, asked)), "namespace");
  const over = { revision: revision === "default" ? "" : revision, global: { istioNamespace: namespace } };
  return {
    chart,
    profile,
    namespace,
    revision,
    values: [asked, over].reduce(overlaid, base),
    warnings: problems.map(({ field, message }) => `${field}: ${message}`),
  };
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

function namespaceOf({ global }: Values): string {
  return String((isRecord(global) ? global.istioNamespace : undefined) ?? "istio-system");
}

function nameOf(name: string, what: string): string {
  if (NAME.test(name)) return name;
  const rule = "lower case letters, digits and dashes, 63 at most";
  throw new MeshError("INSTALL_INVALID", `${what} "${name}" is no name of Kubernetes: ${rule}`);
}
