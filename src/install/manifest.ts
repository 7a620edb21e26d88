/** All objects of an installation, from its settings. */
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import type { RawObject } from "#lib/kubernetes/api-client.ts";
import { renderChart } from "./chart.ts";
import type { Resolved } from "./settings.ts";

/** Which installation an object belongs to: by this it is found again. */
export const OWNER_LABEL = "install.mizzen.dev/revision";

/** Definitions of kinds first, then the namespace, then what the chart gives. */
export function manifestOf({ chart, values, namespace, revision }: Resolved): readonly RawObject[] {
  const definitions = customResourceDefinitions() as unknown as readonly RawObject[];
  const home = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } };
  const rendered = renderChart(chart, values, { name: "istio", namespace });
  return [...definitions, home, ...rendered].map((object) => owned(object, revision));
}

function owned(object: RawObject, owner: string): RawObject {
  const { metadata } = object;
  return { ...object, metadata: { ...metadata, labels: { ...metadata.labels, [OWNER_LABEL]: owner } } };
}
