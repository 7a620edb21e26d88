/** Tables about what a Sidecar lets a workload see, and about the names of clusters and gateways. */

import { type Sidecar, sidecarSchema } from "#config/kinds/sidecar/schema.ts";
import { completeGateway } from "#config/kinds/virtual-service/gateway-name.ts";
import { DEFAULT_MESH_CONFIG, type MeshConfig } from "#config/mesh/mesh-config.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { parse } from "#config/schema/parse.ts";
import { completeHost, isWildcard } from "#config/terms/host.ts";
import type { Service } from "#model/service/service.ts";
import { mostSpecific } from "#translate/names/hosts.ts";
import { outboundCluster, parseClusterName } from "#translate/names/names.ts";
import { scopeOf } from "#translate/scope/egress.ts";
import { distinctServices } from "#translate/scope/services.ts";
import { unknownTarget } from "#translate/scope/sidecars.ts";
import { compareJson } from "../../compare.ts";
import type { KubernetesObject } from "../../kubernetes-mesh.ts";
import { dumpedService, type RecordedInput, recordedMesh, type ServiceDump } from "../../recorded-mesh.ts";
import { byRow, type RowCheck } from "../../unit-tables.ts";

type RawSidecar = KubernetesObject & { readonly spec: object };

interface ScopeRow {
  readonly services?: readonly ServiceDump[];
  readonly virtualServices?: readonly KubernetesObject[];
  readonly sidecarConfig?: RawSidecar;
  readonly expectedServices?: readonly ServiceDump[];
}

interface ListenerRow {
  readonly namespace: string;
  readonly services: readonly ServiceDump[];
  readonly listenerHosts: Readonly<Record<string, { readonly allHosts: readonly string[] }>>;
  readonly expected: readonly ServiceDump[];
}

/** Read without checks: some rows import what no user may write. */
function sidecarOf({ kind, metadata, spec }: RawSidecar): ConfigObject<Sidecar> {
  const { name, namespace = "", labels = {} } = metadata;
  const { value, problems } = parse(sidecarSchema, spec, "spec");
  if (value === undefined) throw new Error(JSON.stringify(problems));
  return {
    kind,
    metadata: { name, namespace, labels, annotations: {}, createdAt: 0 },
    spec: value,
    origin: undefined,
  };
}

function scope(input: RecordedInput, sidecar: ConfigObject<Sidecar> | undefined, namespace: string) {
  const snapshot = recordedMesh(input);
  if ("leftOut" in snapshot) throw new Error(snapshot.leftOut);
  const sidecars = sidecar === undefined ? [] : [sidecar];
  const key = sidecar === undefined ? "" : objectKey(sidecar);
  return scopeOf({ ...snapshot, sidecars }, { role: "sidecar", namespace, sidecar: key });
}

/** Hosts with namespaces and ports, in an order of ours: Istio's tests sort theirs as well. */
function seen(services: readonly Service[]): readonly string[] {
  const names = services.map(({ hostname, namespace, ports }) => {
    const numbers = ports.map(({ port }) => port).sort((a, b) => a - b);
    return `${namespace}/${hostname}:${numbers}`;
  });
  return names.sort();
}

export const sidecarScopeFunctions: Readonly<Record<string, RowCheck>> = {
  "SidecarScope conversion": byRow<ScopeRow>((row) => {
    const { services = [], virtualServices = [], sidecarConfig, expectedServices = [] } = row;
    const sidecar = sidecarConfig && sidecarOf(sidecarConfig);
    const { list } = scope({ services, configs: virtualServices }, sidecar, "mynamespace").services;
    return compareJson(seen(list), seen(expectedServices.map(dumpedService)));
  }),
  "egress listener host selection": byRow<ListenerRow>(({ namespace, services, listenerHosts, expected }) => {
    const hosts = Object.entries(listenerHosts).flatMap(([from, { allHosts }]) =>
      allHosts.map((one) => `${from}/${one}`),
    );
    const sidecar = sidecarOf({
      apiVersion: "",
      kind: "Sidecar",
      metadata: { name: "own", namespace },
      spec: { egress: [{ hosts }] },
    });
    const [listener] = scope({ services }, sidecar, namespace).listeners;
    // Istio keeps several declarations of a host apart until clusters are made of them.
    return compareJson(seen(listener?.services ?? []), seen(distinctServices(expected.map(dumpedService)).list));
  }),
  "outbound traffic policy of a Sidecar": byRow<{
    meshConfig: { outboundTrafficPolicy?: { mode?: "ALLOW_ANY" } };
    sidecar?: RawSidecar;
    outboundTrafficPolicy: { mode?: string };
  }>(({ meshConfig, sidecar, outboundTrafficPolicy }) => {
    const mode = meshConfig.outboundTrafficPolicy?.mode ?? "REGISTRY_ONLY";
    const mesh: MeshConfig = { ...DEFAULT_MESH_CONFIG, outboundTrafficPolicy: { mode } };
    const target = unknownTarget({ mesh }, sidecar && sidecarOf(sidecar));
    return compareJson(target === "PassthroughCluster", outboundTrafficPolicy.mode === "ALLOW_ANY");
  }),
  ParseSubsetKey: byRow<{ input: string; direction: string; port: number; subsetName: string; hostname: string }>(
    ({ input, direction, port, subsetName, hostname }) => {
      const isServerName = input.includes("_.");
      const wanted = direction === "" ? undefined : { direction, port, subset: subsetName, hostname, isServerName };
      return compareJson(parseClusterName(input), wanted);
    },
  ),
  BuildSubsetKey: byRow<{ hostname: string; port: number; subset: string; want: string }>(
    ({ hostname, port, subset, want }) => compareJson(outboundCluster(hostname, port, subset), want),
  ),
  "ResolveShortnameToFQDN(host, meta)": byRow<{
    name: string;
    meta: { Domain?: string; Namespace?: string };
    out: string;
  }>(({ name, meta: { Namespace = "", Domain = "" }, out }) => compareJson(completeHost(name, Namespace, Domain), out)),
  resolveGatewayName: byRow<{ gateway: string; namespace: string; resolved: string }>(
    ({ gateway, namespace, resolved }) => compareJson(completeGateway(gateway, namespace), resolved),
  ),
  MostSpecificHostMatch: byRow<{ in: string[]; needle: string; want: string }>(({ in: hosts, needle, want }) => {
    const mapped = (chosen: readonly string[]) => new Map(chosen.map((host) => [host, host]));
    const exact = mapped(hosts.filter((host) => !isWildcard(host)));
    return compareJson(mostSpecific(needle, exact, mapped(hosts.filter(isWildcard))) ?? "", want);
  }),
};
