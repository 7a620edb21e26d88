/** All objects of an installation, from its settings. */
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { renderChart } from "./chart.ts";
import type { Resolved } from "./settings.ts";
import { withTexts } from "./text-fields.ts";
import { patchedObjects, type Tell } from "./values/component-patches.ts";
import type { Values } from "./values/values.ts";

/** Which installation an object belongs to: by this it is found again. */
export const OWNER_LABEL = "install.mizzen.dev/revision";

/** Definitions of kinds first, then the namespace, then what the chart gives. `tell` hears of overlays that lead nowhere. */
export function manifestOf(settings: Resolved, tell: Tell = () => {}): readonly RawObject[] {
  const { chart, values, namespace, revision, patches } = settings;
  const home = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  const rendered = renderChart(chart, values, { name: "istio", namespace });
  const suffix = revision === "default" ? "" : `-${revision}`;
  const objects = patchedObjects([...definitions(values), home, ...rendered], patches, { namespace, suffix, tell });
  return objects.map((object) => owned(withTexts(object), revision));
}

/** Those that nobody left out. */
function definitions({ base }: Values): readonly RawObject[] {
  const { enabled = true, enableCRDTemplates = true, excludedCRDs = [] } = isRecord(base) ? base : {};
  if (enabled === false || enableCRDTemplates === false) return [];
  const all = customResourceDefinitions() as unknown as readonly RawObject[];
  return all.filter(({ metadata }) => !(Array.isArray(excludedCRDs) && excludedCRDs.includes(metadata.name)));
}

function owned(object: RawObject, owner: string): RawObject {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [OWNER_LABEL]: owner } } };
}
