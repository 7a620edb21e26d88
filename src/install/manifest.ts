/** All objects of an installation, from its settings. */
import { join } from "node:path";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { readChart, readYaml, renderChart } from "./chart.ts";
import { overlaid, parseSet, type Values } from "./values.ts";

export const PROFILES = ["default", "demo", "minimal", "empty"] as const;

/** What a person asks for. */
export interface InstallSettings {
  /** The folder with `chart/` and `profiles/`. */
  readonly manifests: string;
  readonly namespace: string;
  readonly revision: string;
  readonly profile?: string | undefined;
  /** Files with values, or with an IstioOperator; later ones count more. */
  readonly files: readonly string[];
  /** `name=value`, over everything else. */
  readonly set: readonly string[];
}

/** Which installation an object belongs to: by this it is found again. */
export const OWNER_LABEL = "install.mizzen.dev/revision";

/** Definitions of kinds first, then the namespace, then what the chart gives. */
export async function manifestOf(settings: InstallSettings): Promise<readonly RawObject[]> {
  const { manifests, namespace, revision } = settings;
  const chart = await readChart(join(manifests, "chart"));
  const values = await valuesOf(settings, chart.values);
  const release = { name: "istio", namespace };
  const definitions = customResourceDefinitions() as unknown as readonly RawObject[];
  const home = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  const owner = revision || "default";
  return [...definitions, home, ...renderChart(chart, values, release)].map((object) => owned(object, owner));
}

function owned(object: RawObject, owner: string): RawObject {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [OWNER_LABEL]: owner } } };
}

/** The chart's values, those of the profile, of files and of `--set`. */
async function valuesOf(settings: InstallSettings, base: Values): Promise<Values> {
  const { manifests, revision, files, set } = settings;
  const given = await Promise.all(files.map(async (file) => asValues(await readYaml(file))));
  const sets = set.map(parseSet).map(asValues);
  const asked = [...given, ...sets].reduce(overlaid, {});
  const { profile: named, ...over } = asked;
  const profile = String(named ?? settings.profile ?? "default");
  if (!PROFILES.some((one) => one === profile)) {
    throw new MeshError("INSTALL_INVALID", `there is no profile "${profile}": there are ${PROFILES.join(", ")}`);
  }
  const known = await readYaml(join(manifests, "profiles", `${profile}.yaml`));
  return [known, over, ...(revision === "" ? [] : [{ revision }])].reduce(overlaid, base);
}

/**
 * An IstioOperator says `spec.values`, `spec.meshConfig` and so on, and `--set` may name them by `values.`: what it says counts as
 * values of the chart.
 */
function asValues(given: Values): Values {
  const spec = given.kind === "IstioOperator" && isValues(given.spec) ? given.spec : given;
  const { values, ...rest } = spec;
  return isValues(values) ? overlaid(rest, values) : rest;
}

function isValues(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
