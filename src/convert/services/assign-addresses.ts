/** Gives services the addresses that their users left open. */
import { type Service, serviceKey } from "#model/service/service.ts";
import { memoized } from "../identity/memo.ts";
import { type AutoRanges, allocateAddresses, CLUSTER_IP_RANGE, pairedIpv6 } from "./addresses.ts";
import type { ServiceDraft } from "./drafts.ts";
import { type AutoAddresses, hashAddresses, inOrderOfAge } from "./hash-addresses.ts";

/** The services of the drafts, with addresses of the ranges; those they had `before` as long as these are free. */
export function assignAddresses(
  drafts: readonly ServiceDraft[],
  before: readonly Service[],
  ranges: AutoRanges,
): Service[] {
  if (drafts.every(({ needs }) => needs === undefined)) return drafts.map(({ service }) => service);
  const taken = new Set(drafts.flatMap(({ service }) => [...service.addresses, service.autoAddress ?? ""]));
  const needing = (what: ServiceDraft["needs"]) => drafts.filter(({ needs }) => needs === what);
  const clusterIps = allocateAddresses({
    names: needing("cluster-ip").map(({ service }) => service.hostname),
    range: CLUSTER_IP_RANGE,
    taken,
    previous: new Map(before.map(({ hostname, addresses }) => [hostname, addresses[0] ?? ""])),
  });
  const autoAddresses = allocateAddresses({
    names: needing("auto-address").map(({ key }) => key),
    range: ranges.v4,
    taken,
    previous: new Map(before.map((service) => [serviceKey(service), service.autoAddress ?? ""])),
  });
  const hashed = hashAddresses(inOrderOfAge(needing("hash-address").map(({ service }) => service)).map(serviceKey));
  return drafts.map((draft) => {
    const { autoAddress, autoAddress6 } = hashed.get(draft.key) ?? paired(autoAddresses.get(draft.key), ranges);
    return addressed(draft, clusterIps.get(draft.service.hostname), autoAddress, autoAddress6);
  });
}

function paired(autoAddress: string | undefined, ranges: AutoRanges): AutoAddresses {
  return { autoAddress, autoAddress6: autoAddress && pairedIpv6(autoAddress, ranges) };
}

const addressed = memoized(
  (
    { service, needs }: ServiceDraft,
    clusterIp: string | undefined,
    autoAddress: string | undefined,
    autoAddress6: string | undefined,
  ): Service => {
    switch (needs) {
      case "cluster-ip":
        return clusterIp === undefined ? service : { ...service, addresses: [clusterIp] };
      case undefined:
        return service;
      default:
        return { ...service, autoAddress, ...(autoAddress6 && { autoAddress6 }) };
    }
  },
);
