/** Which endpoints are taken first, by where the proxy is. */
import { localityLbSchema } from "#config/kinds/destination-rule/schema.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { parse } from "#config/schema/parse.ts";
import type { Endpoint } from "#model/service/endpoint.ts";
import { preferNear } from "#translate/endpoints/locality.ts";
import { compareJson } from "../compare.ts";
import { type Group, type Outcome, readJson } from "../harness.ts";

interface Locality {
  readonly region?: string;
  readonly zone?: string;
  readonly subZone?: string;
}

interface LocalityEndpoints {
  readonly locality?: Locality;
  readonly priority?: number;
  readonly loadBalancingWeight?: number;
  readonly lbEndpoints?: readonly {
    readonly endpoint: { readonly address: { readonly socketAddress: { readonly address: string } } };
    readonly loadBalancingWeight?: number;
  }[];
}

interface LocalityCase {
  readonly name: string;
  readonly before: { readonly endpoints: readonly LocalityEndpoints[] };
  readonly after: { readonly endpoints: readonly LocalityEndpoints[] };
  /** Endpoints with their labels, one by one beside those of Envoy. */
  readonly wrappedEndpoints: readonly {
    readonly IstioEndpoints: readonly { readonly Labels?: Readonly<Record<string, string>> }[];
    readonly LocalityLbEndpoints: LocalityEndpoints;
  }[];
  readonly locality: Locality;
  readonly localityLbSetting?: object;
  readonly proxyLabels: Readonly<Record<string, string>> | null;
  readonly enableFailover: boolean;
}

export const localityLoadBalancing: Group = {
  name: "locality load balancing",
  cases: async (folder) => {
    const path = "pilot/pkg/networking/core/loadbalancer/cases.json";
    const file = await readJson<{ readonly cases: readonly LocalityCase[] }>(folder, path);
    return (file?.cases ?? []).map((one) => ({ name: one.name, check: () => check(one) }));
  },
};

function check(one: LocalityCase): Outcome {
  const { wrappedEndpoints, before, after } = one;
  const given =
    wrappedEndpoints.length > 0
      ? wrappedEndpoints.map(({ LocalityLbEndpoints, IstioEndpoints }) => ({
          ...LocalityLbEndpoints,
          labels: IstioEndpoints.map(({ Labels = {} }) => Labels),
        }))
      : before.endpoints.map((group) => ({ ...group, labels: (group.lbEndpoints ?? []).map(() => ({})) }));
  const groups = given.map(({ locality, lbEndpoints = [], loadBalancingWeight = 0, labels }) => {
    const endpoints = lbEndpoints
      .slice(0, labels.length)
      .map((each, i) => endpointOf(each.endpoint.address.socketAddress.address, labels[i] ?? {}));
    return { locality: nameOf(locality), endpoints, weight: loadBalancingWeight || endpoints.length };
  });
  const ours = preferNear(groups, inputOf(one)).map(({ locality, endpoints, priority = 0, weight }) => {
    return { locality, priority, weight, addresses: endpoints.map(({ address }) => address) };
  });
  return compareJson(ours, after.endpoints.map(shown));
}

function shown({ locality, priority = 0, loadBalancingWeight = 0, lbEndpoints = [] }: LocalityEndpoints): object {
  const addresses = lbEndpoints.map(({ endpoint }) => endpoint.address.socketAddress.address);
  return { locality: nameOf(locality), priority, weight: loadBalancingWeight, addresses };
}

function nameOf({ region = "", zone = "", subZone = "" }: Locality = {}): string {
  return [region, zone, subZone].join("/").replace(/\/+$/, "");
}

function inputOf({ locality, localityLbSetting, proxyLabels, enableFailover }: LocalityCase) {
  const setting = localityLbSetting && parse(localityLbSchema, localityLbSetting, "").value;
  const spec = {
    host: "test.example.org",
    trafficPolicy: {
      ...(setting && { loadBalancer: { localityLbSetting: setting } }),
      ...(enableFailover && { outlierDetection: {} }),
    },
  };
  const metadata = { name: "rule", namespace: "", labels: {}, annotations: {}, createdAt: 0 };
  return {
    rule: { kind: "DestinationRule", metadata, spec, origin: undefined },
    port: { port: 8080, name: "", protocol: "HTTP" as const },
    subset: "",
    service: {},
    locality: nameOf(locality),
    proxyLabels: Object.entries(proxyLabels ?? {}).map(([name, value]) => `${name}=${value}`),
    mesh: { ...DEFAULT_MESH_CONFIG, localityLbSetting: { enabled: false } },
  };
}

function endpointOf(address: string, labels: Readonly<Record<string, string>>): Endpoint {
  return {
    address,
    ports: {},
    labels,
    namespace: "",
    workloadName: "",
    serviceAccount: "",
    tlsMode: "disabled",
    network: "",
    locality: "",
    clusterId: "",
    weight: 1,
    health: "healthy",
  };
}
