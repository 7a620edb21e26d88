/** A mesh with a way out hides what the machine reaches under addresses that are the mesh's own. */
import { MeshError } from "#lib/mesh-error.ts";
import { runCommand } from "../host/command.ts";
import { overlap } from "../mesh/address-range.ts";

/** Throws when workloads could not reach a network of this machine because the mesh has the same addresses. */
export async function checkEgressRange(cidr: string): Promise<void> {
  const taken = routeInto(await runCommand({ argv: ["ip", "-4", "route"] }), cidr);
  if (taken === undefined) return;
  const { network, device } = taken;
  throw new MeshError(
    "ADDRESSES_OVERLAP",
    `Cannot use --egress: the mesh's addresses ${cidr} overlap ${network}, which this machine reaches by "${device}", so that no workload could; choose another range in mesh.yaml, such as spec: {network: {cidr: 10.99.0.0/16}}`,
  );
}

export interface Route {
  readonly network: string;
  readonly device: string;
}

/** The first route, of those that `ip -4 route` prints, into the range; the default route leads everywhere and is none. */
export function routeInto(printed: string, cidr: string): Route | undefined {
  for (const line of printed.split("\n")) {
    const [, destination = "", device = ""] = /^(\d[\d./]*) .*?\bdev (\S+)/.exec(line) ?? [];
    const network = destination.includes("/") ? destination : `${destination}/32`;
    if (overlap(network, cidr)) return { network, device };
  }
  return undefined;
}
