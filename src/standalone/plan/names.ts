/** Names and addresses that a mesh takes on the machine. All of them carry the mesh's id, so that any of its parts is found again. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { MeshError } from "#lib/mesh-error.ts";
import { type AddressRange, DEFAULT_RANGE, memberAddresses } from "../mesh/address-range.ts";
import { memberKey } from "../mesh/mesh.ts";

/** Where `ip netns` looks for namespaces. */
export const NETNS_FOLDER = "/run/netns";
/** Which meshes there are on this machine: one small file each, gone after a reboot like the namespaces themselves. */
export const MESHES_FOLDER = "/run/mizzen";

/** What is the same in every fabric; addresses of members are in `address-range.ts`. */
export const FABRIC = {
  bridge: "mizzen0",
  /** Source of readiness probes, the address that Istio gives to the kubelet's probes; the capture rules spare it. */
  prober: "169.254.7.127",
} as const;

/** Short, and the same for the same state folder. */
export function meshId(stateFolder: string): string {
  return createHash("sha256").update(stateFolder).digest("hex").slice(0, 6);
}

/** What the names of all network namespaces of a mesh start with. */
export function namespacePrefix(id: string): string {
  return `mizzen-${id}-`;
}

/** Name of the namespace that holds the bridge. The names of members have a dot, so none can be called like this. */
export function fabricNamespace(id: string): string {
  return `${namespacePrefix(id)}fabric`;
}

/** Name of a member's network namespace. */
export function memberNamespace(id: string, member: { readonly name: string; readonly namespace: string }): string {
  return `${namespacePrefix(id)}${memberKey(member)}`;
}

/** The file by which a network namespace is entered. */
export function namespaceFile(netns: string): string {
  return join(NETNS_FOLDER, netns);
}

/** Name of the bridge's side of a member's cable: at most 15 characters, however long the member's name is. */
export function cableName(key: string): string {
  return `mz${createHash("sha256").update(key).digest("hex").slice(0, 12)}`;
}

/** Addresses for members that have none yet; those that have one keep it for as long as the mesh is up. */
export function assignAddresses(
  keys: readonly string[],
  assigned: ReadonlyMap<string, string>,
  range: AddressRange = DEFAULT_RANGE,
): ReadonlyMap<string, string> {
  const taken = new Set(assigned.values());
  const free = freeAddresses(taken, range);
  return new Map(keys.map((key) => [key, assigned.get(key) ?? free.next().value ?? ""]));
}

function* freeAddresses(taken: ReadonlySet<string>, range: AddressRange): Generator<string> {
  for (const address of memberAddresses(range)) if (!taken.has(address)) yield address;
  throw new MeshError(
    "ADDRESSES_USED_UP",
    `Cannot add another member: all addresses of ${range.cidr} are in use; choose a larger spec.network.cidr`,
  );
}
