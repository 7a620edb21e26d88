import { checkExportTo } from "../../checks/export-to.ts";
import { checkSelector } from "../../checks/labels.ts";
import { checkDnsLabel, checkFqdn, checkHost, isPartialWildcard } from "../../checks/names.ts";
import { checkPort, checkSubnet } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { refusesAutoAddress } from "../../terms/auto-address.ts";
import { isWildcard } from "../../terms/host.ts";
import { isHttp, isTcp, isTls, PROTOCOL_NAMES, parseProtocol } from "../../terms/protocol.ts";
import { checkServiceExpansion } from "../check-expansion.ts";
import { checkNamedEndpoint, checkStaticEndpoint } from "../workload-entry/check.ts";
import type { ServiceEntry } from "./schema.ts";

/** Checks a ServiceEntry. */
export function* checkServiceEntry(object: ConfigObject<ServiceEntry>): Iterable<Problem> {
  const { spec, metadata } = object;
  const { workloadSelector, endpoints, addresses = [], resolution = "NONE" } = spec;
  if (workloadSelector !== undefined) {
    const wrong = [...checkSelector(workloadSelector.labels, "spec.workloadSelector.labels", "selects nothing")];
    yield* wrong;
    if (resolution === "NONE" && wrong.every(({ severity }) => severity === "warning")) {
      yield warning("spec.workloadSelector", "has no effect for resolution NONE");
    }
    if (endpoints !== undefined) yield error("spec.endpoints", "cannot be set together with workloadSelector");
  }
  yield* checkHosts(spec);
  for (const [i, address] of addresses.entries()) yield* checkSubnet(address, `spec.addresses[${i}]`);
  yield* checkPorts(object);
  yield* checkResolution(spec);
  yield* checkSharedPorts(spec);
  yield* checkServiceExpansion(spec);
  yield* checkExportTo({ exportTo: spec.exportTo, namespace: metadata.namespace, nobodyAllowed: true });
}

function* checkHosts({ hosts, resolution = "NONE" }: ServiceEntry): Iterable<Problem> {
  if (hosts.length === 0) yield error("spec.hosts", "needs at least one host");
  for (const [i, host] of hosts.entries()) {
    if (host === "*") yield error(`spec.hosts[${i}]`, `must not be "*"`);
    else yield* checkHost(host, `spec.hosts[${i}]`);
    if (isPartialWildcard(host) && resolution !== "DYNAMIC_DNS") {
      yield warning(`spec.hosts[${i}]`, `should have a wildcard as a whole label only, not "${host}"`);
    }
  }
}

function* checkPorts({ spec, metadata }: ConfigObject<ServiceEntry>): Iterable<Problem> {
  const { ports = [], addresses = [], resolution = "NONE" } = spec;
  const needsAddress = addresses.length === 0 && (resolution === "NONE" || refusesAutoAddress(metadata));
  const names = new Set<string>();
  const numbers = new Set<number>();
  for (const [i, { name, number, protocol = "", targetPort = 0 }] of ports.entries()) {
    const at = `spec.ports[${i}]`;
    if (names.has(name)) yield error(`${at}.name`, `is there twice: "${name}"`);
    if (numbers.has(number)) yield error(`${at}.number`, `is there twice: ${number}`);
    names.add(name);
    numbers.add(number);
    yield* checkDnsLabel(name, `${at}.name`);
    yield* checkPort(number, `${at}.number`);
    if (targetPort !== 0) yield* checkPort(targetPort, `${at}.targetPort`);
    if (protocol !== "" && parseProtocol(protocol) === "Unsupported") {
      yield error(`${at}.protocol`, `must be one of ${PROTOCOL_NAMES.join(", ")}, not "${protocol}"`);
    }
    if (needsAddress && (protocol === "" || protocol === "TCP")) {
      yield warning("spec.addresses", `are needed to tell port ${number} from others, since it serves TCP`);
    }
  }
}

function* checkResolution(spec: ServiceEntry): Iterable<Problem> {
  const { resolution = "NONE", addresses = [], endpoints = [] } = spec;
  if (addresses.some((address) => address.includes("/")) && resolution !== "NONE" && resolution !== "STATIC") {
    yield error("spec.addresses", "can be networks for resolution NONE or STATIC only");
  }
  const names = new Set((spec.ports ?? []).map(({ name }) => name));
  switch (resolution) {
    case "NONE":
      if (endpoints.length > 0) yield error("spec.endpoints", "cannot be set for resolution NONE");
      break;
    case "STATIC":
      for (const [i, endpoint] of endpoints.entries()) {
        yield* checkStaticEndpoint(endpoint, `spec.endpoints[${i}]`, names);
      }
      break;
    case "DYNAMIC_DNS":
      yield* checkDynamic(spec);
      break;
    default:
      yield* checkNamed(spec, names);
  }
}

function* checkNamed(spec: ServiceEntry, portNames: ReadonlySet<string>): Iterable<Problem> {
  const { resolution, hosts, endpoints = [], addresses = [], ports = [] } = spec;
  if (endpoints.length === 0) {
    for (const [i, host] of hosts.entries()) yield* checkFqdn(host, `spec.hosts[${i}]`);
  }
  if (resolution === "DNS_ROUND_ROBIN" && endpoints.length > 1) {
    yield error("spec.endpoints", "can be one at most for resolution DNS_ROUND_ROBIN");
  }
  for (const [i, endpoint] of endpoints.entries()) {
    yield* checkNamedEndpoint(endpoint, `spec.endpoints[${i}]`, portNames);
  }
  const hasTcp = ports.some(({ protocol = "" }) => isTcp(parseProtocol(protocol)));
  if (addresses.length > 0 && hasTcp && hosts.length > 1) {
    yield warning("spec.hosts", "should be one only, since TCP to an address does not say which is meant");
  }
}

/** Resolution of whatever name fits a wildcard, at the time of the request. */
function* checkDynamic(spec: ServiceEntry): Iterable<Problem> {
  const { hosts, addresses = [], endpoints = [], ports = [], location } = spec;
  for (const [i, host] of hosts.entries()) {
    if (!isWildcard(host)) yield error(`spec.hosts[${i}]`, "needs a wildcard for resolution DYNAMIC_DNS");
  }
  if (addresses.length > 0) yield error("spec.addresses", "cannot be set for resolution DYNAMIC_DNS");
  if (endpoints.length > 0) yield error("spec.endpoints", "cannot be set for resolution DYNAMIC_DNS");
  for (const [i, { protocol = "" }] of ports.entries()) {
    if (!["HTTP", "TLS"].includes(parseProtocol(protocol))) {
      yield error(`spec.ports[${i}].protocol`, "must be HTTP or TLS for resolution DYNAMIC_DNS");
    }
  }
  if (location === "MESH_INTERNAL") yield error("spec.location", "must be MESH_EXTERNAL for resolution DYNAMIC_DNS");
}

/** HTTP says which host is meant, and so does TLS; other protocols do not. */
function* checkSharedPorts({ hosts, ports = [], resolution = "NONE" }: ServiceEntry): Iterable<Problem> {
  if (resolution === "NONE" || hosts.length < 2) return;
  const index = ports.findIndex(({ protocol = "" }) => {
    const parsed = parseProtocol(protocol);
    return !isHttp(parsed) && !isTls(parsed);
  });
  if (index >= 0) yield error(`spec.ports[${index}].protocol`, "must be HTTP or TLS when there are several hosts");
}
