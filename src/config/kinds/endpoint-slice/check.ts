import { isIP } from "node:net";
import { checkFqdn } from "../../checks/names.ts";
import { checkPort } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem } from "../../schema/problem.ts";
import type { EndpointSlice } from "./schema.ts";

/** Checks an EndpointSlice as far as Kubernetes would refuse it. */
export function* checkEndpointSlice({ spec }: ConfigObject<EndpointSlice>): Iterable<Problem> {
  const { addressType = "", endpoints = [], ports = [] } = spec;
  if (!["IPv4", "IPv6", "FQDN"].includes(addressType)) {
    yield error("spec.addressType", `must be one of IPv4, IPv6, FQDN, not "${addressType}"`);
    return;
  }
  for (const [i, { port }] of ports.entries()) {
    if (port !== undefined) yield* checkPort(port, `spec.ports[${i}].port`);
  }
  for (const [i, { addresses = [] }] of endpoints.entries()) {
    if (addresses.length === 0) yield error(`spec.endpoints[${i}].addresses`, "needs at least one address");
    for (const [k, address] of addresses.entries()) {
      yield* checkAddress(address, addressType, `spec.endpoints[${i}].addresses[${k}]`);
    }
  }
}

function* checkAddress(address: string, type: string, at: string): Iterable<Problem> {
  if (type === "FQDN") yield* checkFqdn(address, at);
  else if (isIP(address) !== (type === "IPv4" ? 4 : 6)) yield error(at, `must be an ${type} address, not "${address}"`);
}
