/**
 * What kube-proxy does in a cluster, for the fabric: packets to a service's address go to one of its endpoints. Members
 * with a sidecar seldom need it, Envoy picks their endpoints; those without one have nothing else.
 */
import { isIPv4 } from "node:net";
import { type Endpoint, takesRequests } from "#model/service/endpoint.ts";
import { type ServicePort, serviceKey } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";

const SERVICES = "MIZZEN-SERVICES";
const HAIRPIN = "MIZZEN-HAIRPIN";
const NO_ENDPOINTS = "MIZZEN-NO-ENDPOINTS";

/** Applied once: the chains and the jumps to them. */
export const BASE_RULES = `*nat
:${SERVICES} - [0:0]
:${HAIRPIN} - [0:0]
-A PREROUTING -j ${SERVICES}
-A OUTPUT -j ${SERVICES}
-A POSTROUTING -j ${HAIRPIN}
COMMIT
*filter
:${NO_ENDPOINTS} - [0:0]
-A FORWARD -j ${NO_ENDPOINTS}
-A OUTPUT -j ${NO_ENDPOINTS}
COMMIT
`;

/** The rules for a state of the mesh, for `iptables-restore --noflush`: it replaces the chains as a whole, at one moment. */
export function serviceRules(snapshot: Snapshot): string {
  const targets = serviceTargets(snapshot);
  const served = targets.filter(({ backends }) => backends.length > 0);
  const empty = targets.filter(({ backends }) => backends.length === 0);
  const addresses = [...new Set(served.flatMap(({ backends }) => backends.map(({ address }) => address)))].sort();
  return [
    "*nat",
    `:${SERVICES} - [0:0]`,
    `:${HAIRPIN} - [0:0]`,
    ...served.flatMap(translations),
    // A member that reaches itself by way of a service would drop packets from its own address.
    ...addresses.map((address) => `-A ${HAIRPIN} -s ${address}/32 -d ${address}/32 -j MASQUERADE`),
    "COMMIT",
    "*filter",
    `:${NO_ENDPOINTS} - [0:0]`,
    ...empty.map((target) => `-A ${NO_ENDPOINTS} ${matchOf(target)} -j REJECT`),
    "COMMIT",
    "",
  ].join("\n");
}

interface Backend {
  readonly address: string;
  readonly port: number;
}

interface Target {
  readonly address: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
  readonly backends: readonly Backend[];
}

function serviceTargets({ services, endpoints }: Snapshot): readonly Target[] {
  const taken = new Set<string>();
  return services.flatMap((service) => {
    // Addresses of service entries are for sidecars: they may be those of machines that are reached as they are.
    if (service.registry !== "Kubernetes" || service.resolution !== "static") return [];
    const found = endpoints.get(serviceKey(service))?.endpoints ?? [];
    return service.addresses
      .filter((address) => isIPv4(address))
      .flatMap((address) => service.ports.map((port) => targetOf(address, port, found)))
      .filter(({ address, port, protocol }) => isFirst(taken, `${protocol}/${address}:${port}`));
  });
}

function targetOf(address: string, { name, port, protocol }: ServicePort, endpoints: readonly Endpoint[]): Target {
  const backends = endpoints
    .filter((endpoint) => takesRequests(endpoint) && isIPv4(endpoint.address))
    .map((endpoint): Backend => ({ address: endpoint.address, port: endpoint.ports[name] ?? 0 }))
    .filter((backend) => backend.port > 0);
  return { address, port, protocol: protocol === "UDP" ? "udp" : "tcp", backends };
}

/** Each backend but the last is taken with such a probability that all have the same share. */
function translations(target: Target): readonly string[] {
  const { backends } = target;
  return backends.map(({ address, port }, i) => {
    const left = backends.length - i;
    const chance = left === 1 ? "" : ` -m statistic --mode random --probability ${(1 / left).toFixed(10)}`;
    return `-A ${SERVICES} ${matchOf(target)}${chance} -j DNAT --to-destination ${address}:${port}`;
  });
}

function matchOf({ address, port, protocol }: Target): string {
  return `-d ${address}/32 -p ${protocol} -m ${protocol} --dport ${port}`;
}

/** Older services win conflicts, and they come first. */
function isFirst(taken: Set<string>, key: string): boolean {
  if (taken.has(key)) return false;
  taken.add(key);
  return true;
}
