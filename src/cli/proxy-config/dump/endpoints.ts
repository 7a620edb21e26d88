/** `proxy-config endpoint`: from a config dump (`include_eds`), or with their health from Envoy's page `clusters?format=json`. */

import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { formatGoTable } from "#lib/print/go-table.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { byClusterKey } from "./cluster-key.ts";
import type { ConfigDump } from "./dump.ts";
import { at, listAt, numberAt, objectAt, textAt } from "./json.ts";

export interface EndpointFilter {
  readonly address?: string | undefined;
  readonly port?: number | undefined;
  readonly cluster?: string | undefined;
  readonly status?: string | undefined;
}

/** The assignments of a dump with the endpoints that the filter lets through; those that have none left are left out. */
export function assignmentsOf(dump: ConfigDump, filter: EndpointFilter): readonly JsonObject[] {
  const section = dump.find("EndpointsConfigDump") ?? {};
  return [...listAt(section, "dynamicEndpointConfigs"), ...listAt(section, "staticEndpointConfigs")]
    .flatMap((entry) => objectAt(entry, "endpointConfig"))
    .map((assignment) => filtered(assignment, filter))
    .filter((assignment) => listAt(assignment, "endpoints").some((group) => listAt(group, "lbEndpoints").length > 0))
    .sort((one, other) => byClusterKey(textAt(one, "clusterName"), textAt(other, "clusterName")));
}

function filtered({ "@type": _, ...assignment }: JsonObject, filter: EndpointFilter): JsonObject {
  const cluster = textAt(assignment, "clusterName");
  const endpoints = listAt(assignment, "endpoints").map((group) => ({
    ...group,
    lbEndpoints: listAt(group, "lbEndpoints").filter((endpoint) => {
      const port = numberAt(endpoint, "endpoint", "address", "socketAddress", "portValue");
      return isWanted({ addresses: addressesOf(endpoint), port, status: healthOf(endpoint), cluster }, filter);
    }),
  }));
  return { ...assignment, endpoints };
}

/** The table of assignments. */
export function formatAssignments(assignments: readonly JsonObject[], withType: boolean): string {
  const rows = assignments.flatMap((assignment) =>
    listAt(assignment, "endpoints").flatMap((group) =>
      listAt(group, "lbEndpoints").map((endpoint) => [
        `${withType ? "endpoint/" : ""}${addressesOf(endpoint).join(",")}`,
        healthOf(endpoint),
        localityText(group.locality),
        textAt(assignment, "clusterName"),
      ]),
    ),
  );
  return formatGoTable([["NAME", "STATUS", "LOCALITY", "CLUSTER"], ...rows], 5);
}

/** Clusters of Envoy's own page that have an endpoint which the filter lets through. */
export function clusterStatusesOf(page: JsonObject, filter: EndpointFilter): readonly JsonObject[] {
  return listAt(page, "clusterStatuses").filter((status) => hostsOf(status, filter).length > 0);
}

/** The table of endpoints with their health, by address. */
export function formatClusterStatuses(statuses: readonly JsonObject[], filter: EndpointFilter): string {
  const rows = statuses
    .flatMap((status) => hostsOf(status, filter))
    .sort(
      (one, other) =>
        compareText(one.address, other.address) || one.port - other.port || compareText(one.cluster, other.cluster),
    )
    .map(({ address, port, status, isEjected, cluster }) => [
      port === 0 ? address : `${address}:${port}`,
      status,
      isEjected ? "FAILED" : "OK",
      cluster,
    ]);
  return formatGoTable([["ENDPOINT", "STATUS", "OUTLIER CHECK", "CLUSTER"], ...rows], 5);
}

function hostsOf(cluster: JsonObject, filter: EndpointFilter) {
  const name = textAt(cluster, "name");
  return listAt(cluster, "hostStatuses")
    .map((host) => {
      const socket = at(host, "address", "socketAddress");
      const pipe = textAt(host, "address", "pipe", "path");
      const address =
        textAt(socket, "address") || (pipe && `unix://${pipe}`) || internalAddress(host.address) || "unknown";
      return {
        address,
        port: numberAt(socket, "portValue"),
        status: textAt(host, "healthStatus", "edsHealthStatus") || "UNKNOWN",
        isEjected: at(host, "healthStatus", "failedOutlierCheck") === true,
        cluster: name,
      };
    })
    .filter(({ address, port, status }) => isWanted({ addresses: [address], port, status, cluster: name }, filter));
}

interface Described {
  readonly addresses: readonly string[];
  readonly port: number;
  readonly status: string;
  readonly cluster: string;
}

function isWanted(found: Described, { address = "", port = 0, cluster = "", status = "" }: EndpointFilter): boolean {
  const isSame = (one: string, other: string) => one.toLowerCase() === other.toLowerCase();
  return (
    (address === "" || found.addresses.some((one) => isSame(one, address))) &&
    (port === 0 || found.port === port) &&
    (cluster === "" || isSame(found.cluster, cluster)) &&
    (status === "" || isSame(found.status, status))
  );
}

function addressesOf(endpoint: JsonObject): readonly string[] {
  const first = at(endpoint, "endpoint", "address");
  const more = listAt(endpoint, "endpoint", "additionalAddresses").map((one) => one.address);
  return [first, ...more].map((address) => {
    const [socket] = objectAt(address, "socketAddress");
    if (socket !== undefined) return `${textAt(socket, "address")}:${numberAt(socket, "portValue")}`;
    return textAt(address, "pipe", "path") || internalAddress(address) || "unknown";
  });
}

function internalAddress(address: JsonValue | undefined): string {
  const listener = textAt(address, "envoyInternalAddress", "serverListenerName");
  return listener === "" ? "" : `envoy://${listener}/${textAt(address, "envoyInternalAddress", "endpointId")}`;
}

function healthOf(endpoint: JsonObject): string {
  return textAt(endpoint, "healthStatus") || "UNKNOWN";
}

/** `region/zone/subzone`, up to the first part that is missing. */
function localityText(locality: JsonValue | undefined): string {
  const parts = ["region", "zone", "subZone"].map((part) => textAt(locality, part));
  const end = parts.indexOf("", 1);
  return (end === -1 ? parts : parts.slice(0, end)).join("/");
}
