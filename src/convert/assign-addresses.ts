/** Gives services the addresses that their users left open. */
import { type Service, serviceKey } from "#model/service.ts";
import { AUTO_ADDRESS_RANGE, allocateAddresses, CLUSTER_IP_RANGE } from "./addresses.ts";
import type { ServiceDraft } from "./drafts.ts";
import { memoized } from "./memo.ts";

/** The services of the drafts, with addresses; those they had `before` as long as these are free. */
export function assignAddresses(drafts: readonly ServiceDraft[], before: readonly Service[]): Service[] {
  const taken = new Set(drafts.flatMap(({ service }) => service.addresses));
  const clusterIps = allocateAddresses({
    names: drafts.filter(({ needs }) => needs === "cluster-ip").map(({ service }) => service.hostname),
    range: CLUSTER_IP_RANGE,
    taken,
    previous: new Map(before.map(({ hostname, addresses }) => [hostname, addresses[0] ?? ""])),
  });
  const autoAddresses = allocateAddresses({
    names: drafts.filter(({ needs }) => needs === "auto-address").map(({ key }) => key),
    range: AUTO_ADDRESS_RANGE,
    taken,
    previous: new Map(before.map((service) => [serviceKey(service), service.autoAddress ?? ""])),
  });
  return drafts.map((draft) => addressed(draft, clusterIps.get(draft.service.hostname), autoAddresses.get(draft.key)));
}

const addressed = memoized(
  ({ service, needs }: ServiceDraft, clusterIp: string | undefined, autoAddress: string | undefined): Service => {
    if (needs === "auto-address") return { ...service, autoAddress };
    return needs === "cluster-ip" && clusterIp !== undefined ? { ...service, addresses: [clusterIp] } : service;
  },
);
