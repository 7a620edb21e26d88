/** How a ready member is made known to the control plane. */
import { TLS_MODE, WORKLOAD_NAME } from "#model/labels/labels.ts";
import { type Member, memberKey } from "../mesh/mesh.ts";

/** Name of the member's file in the registry folder. */
export function workloadEntryFile(member: Pick<Member, "name" | "namespace">): string {
  return `${memberKey(member)}.json`;
}

/** The WorkloadEntry of a member at an address, as the text of its file. */
export function workloadEntry(member: Member, address: string): string {
  const { name, namespace, workload, serviceAccount, proxy } = member;
  const labels = {
    ...member.labels,
    [WORKLOAD_NAME]: workload,
    // Injection says so of sidecars; a gateway's ports speak what its Gateways say.
    [TLS_MODE]: proxy === "sidecar" ? (member.labels[TLS_MODE] ?? "istio") : "disabled",
  };
  const named = member.ports.filter((port) => port.name !== "");
  const entry = {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: { name, namespace, labels },
    spec: {
      address,
      labels,
      serviceAccount,
      ...(named.length > 0 ? { ports: Object.fromEntries(named.map((port) => [port.name, port.port])) } : {}),
    },
  };
  return `${JSON.stringify(entry, null, 2)}\n`;
}
