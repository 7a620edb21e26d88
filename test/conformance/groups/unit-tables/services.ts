/** Tables about how registries become services and endpoints. */

import { checkLabels } from "#config/checks/labels.ts";
import { parseObject } from "#config/kinds/parse-object.ts";
import type { Pod, PodStatus } from "#config/kinds/pod/schema.ts";
import { serviceEntrySchema } from "#config/kinds/service-entry/schema.ts";
import { workloadEntrySchema } from "#config/kinds/workload-entry/schema.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { parse } from "#config/schema/parse.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { buildSnapshot } from "#convert/snapshot.ts";
import { podWorkload } from "#convert/workloads/pods.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { type Endpoint, endpointPort } from "#model/service/endpoint.ts";
import { type Resolution, type Service, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { compareJson } from "../../compare.ts";
import type { KubernetesObject } from "../../kubernetes-mesh.ts";
import { byRow, unitTables } from "../../unit-tables.ts";

const RESOLUTIONS: readonly Resolution[] = ["static", "dns", "passthrough", "dns-round-robin", "alias", "dynamic-dns"];
const UNSPECIFIED = "0.0.0.0";

interface ServiceRow {
  readonly Hostname: string;
  readonly DefaultAddress?: string;
  readonly AutoAllocatedIPv4Address?: string;
  readonly AutoAllocatedIPv6Address?: string;
  readonly MeshExternal?: boolean;
  readonly Resolution?: number;
  readonly ServiceAccounts?: readonly string[];
  readonly Ports?: readonly { readonly Name: string; readonly Port: number; readonly Protocol: string }[];
  readonly Attributes: {
    readonly Namespace: string;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly LabelSelectors?: Readonly<Record<string, string>>;
  };
}

interface InstanceRow {
  readonly Service: { readonly Hostname: string };
  readonly ServicePort: { readonly Port: number };
  readonly Endpoint: {
    readonly Addresses: readonly string[];
    readonly EndpointPort?: number;
    readonly Labels?: Readonly<Record<string, string>>;
    readonly ServiceAccount?: string;
    readonly TLSMode?: string;
  };
}

interface EntryObjectRow {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: object;
  readonly status?: object;
}

/** Read without checks: some rows hold what no user may write. */
function entryObject({ metadata, spec, status }: EntryObjectRow): ConfigObject {
  const head = { labels: {}, ...metadata, annotations: {}, createdAt: 0 };
  const value = parse(serviceEntrySchema, spec, "spec").value;
  return { kind: "ServiceEntry", metadata: head, spec: value, ...(status && { status }), origin: undefined };
}

function snapshotOf(...objects: ConfigObject[]): Snapshot {
  const features = { ...DEFAULT_FEATURES, clusterId: "" };
  return buildSnapshot({ objects, mesh: DEFAULT_MESH_CONFIG, features, byApiServer: true });
}

/** Labels of its services, as Istio has them when it is told to name what is outside the mesh. */
function shownLabels(row: EntryObjectRow): readonly object[] {
  const features = { ...DEFAULT_FEATURES, canonicalExternal: true };
  const objects = [entryObject(row)];
  const { services } = buildSnapshot({ objects, mesh: DEFAULT_MESH_CONFIG, features, byApiServer: true });
  return services.flatMap(({ labels, addresses }) =>
    Array.from({ length: Math.max(1, addresses.length) }, () => labels),
  );
}

/** In Istio each address is a service of its own. */
function shownServices(services: readonly Service[]): object[] {
  return services.flatMap((service) => {
    const addresses = service.addresses.length === 0 ? [UNSPECIFIED] : service.addresses;
    return addresses.map((address) => ({
      hostname: service.hostname,
      namespace: service.namespace,
      address,
      auto: [service.autoAddress ?? "", service.autoAddress6 ?? ""],
      external: service.meshExternal,
      resolution: service.resolution,
      names: service.subjectAltNames,
      ports: service.ports.map(({ name, port, protocol }) => ({ name, port, protocol })),
      selector: service.selector ?? {},
    }));
  });
}

function expectedServices(rows: readonly ServiceRow[]): object[] {
  return rows.map((row) => ({
    hostname: row.Hostname,
    namespace: row.Attributes.Namespace,
    address: row.DefaultAddress ?? "",
    auto: [row.AutoAllocatedIPv4Address ?? "", row.AutoAllocatedIPv6Address ?? ""],
    external: row.MeshExternal === true,
    resolution: RESOLUTIONS[row.Resolution ?? 0],
    names: row.ServiceAccounts ?? [],
    ports: (row.Ports ?? []).map(({ Name, Port, Protocol }) => ({ name: Name, port: Port, protocol: Protocol })),
    selector: row.Attributes.LabelSelectors ?? {},
  }));
}

function shownInstances(snapshot: Snapshot): string[] {
  const all = snapshot.services.flatMap((service) => {
    const endpoints = snapshot.endpoints.get(serviceKey(service))?.endpoints ?? [];
    return service.ports.flatMap((port) =>
      endpoints.map((endpoint) =>
        instanceText(service.hostname, port.port, {
          ...shownEndpoint(endpoint),
          port: endpointPort(endpoint, port) ?? 0,
        }),
      ),
    );
  });
  return all.sort();
}

function shownEndpoint({ address, serviceAccount, namespace, tlsMode }: Endpoint): object {
  const trustDomain = DEFAULT_MESH_CONFIG.trustDomain;
  const account = serviceAccount === "" ? "" : formatSpiffeId({ trustDomain, namespace, serviceAccount });
  return { address: address.replace(/^unix:\/\//, ""), account, tlsMode };
}

function expectedInstances(rows: readonly InstanceRow[]): string[] {
  return rows
    .map(({ Service: service, ServicePort: port, Endpoint: endpoint }) => {
      const { Addresses, EndpointPort = 0, ServiceAccount: account = "", TLSMode: tlsMode = "disabled" } = endpoint;
      return instanceText(service.Hostname, port.Port, { address: Addresses[0], account, tlsMode, port: EndpointPort });
    })
    .sort();
}

function instanceText(hostname: string, port: number, endpoint: object): string {
  return `${hostname}:${port} ${JSON.stringify(Object.entries(endpoint).sort())}`;
}

export function protocolOf(port: object): string | undefined {
  const metadata = { name: "a", namespace: "default" };
  const { object } = parseObject({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [port] } });
  return object && snapshotOf(object).services[0]?.ports[0]?.protocol;
}

export const serviceTables = unitTables(
  "unit tables: services",
  ["pilot/pkg/serviceregistry", "pkg/config/protocol", "pkg/config/labels"],
  {
    "pod locality": byRow<{
      nodes?: KubernetesObject[];
      pods: KubernetesObject[];
      wantAZ: Readonly<Record<string, string>>;
    }>(({ nodes = [], pods, wantAZ }) => {
      // Go printed the whole pod as the key; its name is the first word of the metadata.
      const wanted = Object.entries(wantAZ).map(([pod, locality]) => [/ObjectMeta:\{(\S+)/.exec(pod)?.[1], locality]);
      const known = new Map(nodes.map((raw) => [raw.metadata.name, parseObject(raw).object]));
      const found = pods.map((raw) => {
        const pod = parseObject({ ...raw, apiVersion: "v1", kind: "Pod" }).object as ConfigObject<Pod, PodStatus>;
        const around = { clusterId: "", networkOf: () => "", networkOfEntry: () => "" };
        return [raw.metadata.name, podWorkload(pod, known.get(pod.spec.nodeName ?? ""), around).workload.locality];
      });
      return compareJson(Object.fromEntries(found), Object.fromEntries(wanted));
    }),
    "kube.ConvertProtocol": byRow<{ name: string; port: number; proto: string; out: string }>(
      ({ name, port, proto, out }) => compareJson(protocolOf({ ...(name && { name }), port, protocol: proto }), out),
    ),
    "exportTo annotation": byRow<{ Annotation: string; Want: string[] }>(({ Annotation, Want }) => {
      const annotations = { "networking.istio.io/exportTo": Annotation };
      const metadata = { name: "a", namespace: "default", annotations };
      const { object } = parseObject({ apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 80 }] } });
      const [service] = object === undefined ? [] : snapshotOf(object).services;
      // Nothing set means what the mesh config says.
      return compareJson(service?.exportTo, Want.length === 0 ? DEFAULT_MESH_CONFIG.defaultServiceExportTo : Want);
    }),
    "convertServices(ServiceEntry)": byRow<{ externalSvc: EntryObjectRow; services: ServiceRow[] }>(
      ({ externalSvc, services }) => {
        const isLabelled = services.some(({ Attributes: { Labels = {} } }) => Object.keys(Labels).length > 0);
        if (isLabelled)
          return compareJson(
            shownLabels(externalSvc),
            services.map(({ Attributes }) => Attributes.Labels),
          );
        if (services.some((one) => one.AutoAllocatedIPv4Address !== undefined) && externalSvc.status === undefined) {
          return { leftOut: "the status that has the addresses is not in the data" };
        }
        return compareJson(shownServices(snapshotOf(entryObject(externalSvc)).services), expectedServices(services));
      },
    ),
    convertServiceEntryToInstances: byRow<{ externalSvc: EntryObjectRow; out: InstanceRow[] }>(({ externalSvc, out }) =>
      compareJson(shownInstances(snapshotOf(entryObject(externalSvc))), expectedInstances(out)),
    ),
    convertWorkloadEntryToServiceInstances: byRow<{ se: EntryObjectRow; wle: object; out: InstanceRow[] }>(
      ({ se, wle, out }) => {
        const spec = parse(workloadEntrySchema, wle, "spec").value;
        const metadata = { name: "w", namespace: se.metadata.namespace, labels: {}, annotations: {}, createdAt: 0 };
        const entry = { kind: "WorkloadEntry", metadata, spec, origin: undefined };
        return compareJson(shownInstances(snapshotOf(entryObject(se), entry)), expectedInstances(out));
      },
    ),
    "protocol.Parse": byRow<{ name: string; out: string }>(({ name, out }) =>
      compareJson(parseProtocol(name), out === "UnsupportedProtocol" ? "Unsupported" : out),
    ),
    "labels.Instance.SubsetOf": byRow<{
      left?: Readonly<Record<string, string>>;
      right?: Readonly<Record<string, string>>;
      expected: { readonly subsetOf?: boolean };
    }>(({ left = {}, right = {}, expected }) => compareJson(hasLabels(right, left), expected.subsetOf === true)),
    "labels.Instance.Validate": byRow<{ tags?: Readonly<Record<string, string>>; valid: boolean }>(({ tags, valid }) =>
      compareJson(
        [...checkLabels(tags, "")].every(({ severity }) => severity !== "error"),
        valid,
      ),
    ),
  },
);
