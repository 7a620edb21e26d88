/** Ingresses to Gateways and VirtualServices. */
import { dirname, join } from "node:path";
import type { Ingress } from "#config/kinds/ingress/schema.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { convertIngresses } from "#convert/routes/ingress.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { compareJson } from "../compare.ts";
import { type Group, type Outcome, readJson, readText } from "../harness.ts";

interface IngressCases {
  readonly domainSuffix: string;
  readonly cases: readonly { readonly name: string; readonly input: string; readonly expected: string }[];
}

const FILE = "pilot/pkg/config/kube/ingress/cases.json";

export const ingressConversion: Group = {
  name: "ingress conversion",
  cases: async (folder) => {
    const found = await readJson<IngressCases>(folder, FILE);
    const near = join(folder, dirname(FILE));
    return (found?.cases ?? []).map(({ name, input, expected }) => ({
      name,
      check: () => check(join(near, input), join(near, expected), found?.domainSuffix ?? ""),
    }));
  },
};

async function check(input: string, expected: string, domain: string): Promise<Outcome> {
  const objects = readDocuments((await readText(input)) ?? "").map(({ value }) => parseObject(value).object);
  const ingresses = objects.filter((object) => object !== undefined) as ConfigObject<Ingress>[];
  // The recorded mesh takes Ingresses that name no class.
  const mesh = { ...DEFAULT_MESH_CONFIG, ingressControllerMode: "DEFAULT" as const };
  const { gateways, virtualServices } = convertIngresses({
    ingresses,
    classes: [],
    services: [],
    mesh,
    domain,
    gatewayNamespace: "istio-system",
  });
  const actual = [...gateways, ...virtualServices].map(({ kind, metadata, spec }) => {
    const { name, namespace, annotations } = metadata;
    const shown = Object.keys(annotations).length === 0 ? { name, namespace } : { name, namespace, annotations };
    return { apiVersion: "networking.istio.io/v1", kind, metadata: shown, spec };
  });
  const wanted = readDocuments((await readText(expected)) ?? "").map(({ value }) => value as (typeof actual)[number]);
  return compareJson(sorted(actual), sorted(wanted));
}

function sorted<T extends { readonly metadata: { readonly name: string } }>(objects: readonly T[]): readonly T[] {
  return objects.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}
