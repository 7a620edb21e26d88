import { isIP } from "node:net";
import { checkLabels } from "../../checks/labels.ts";
import { checkDnsLabel, checkFqdn } from "../../checks/names.ts";
import { checkPort, checkUnixPath, UNIX_PREFIX } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { formatField } from "../../schema/field-path.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import type { WorkloadEntry } from "./schema.ts";

/** Checks a WorkloadEntry. */
export function* checkWorkloadEntry({ spec }: ConfigObject<WorkloadEntry>): Iterable<Problem> {
  yield* checkAddress(spec, "spec", { namesAllowed: true });
  yield* checkPortsAndLabels(spec, "spec", undefined);
}

/** An endpoint of a ServiceEntry that is found by address. */
export function* checkStaticEndpoint(
  entry: WorkloadEntry,
  at: string,
  servicePorts: ReadonlySet<string>,
): Iterable<Problem> {
  yield* checkAddress(entry, at, { namesAllowed: false });
  if (isSocket(entry) && servicePorts.size !== 1)
    yield error(`${at}.address`, "can be a socket file for one port only");
  yield* checkPortsAndLabels(entry, at, servicePorts);
}

/** An endpoint of a ServiceEntry that is found by name. */
export function* checkNamedEndpoint(
  entry: WorkloadEntry,
  at: string,
  servicePorts: ReadonlySet<string>,
): Iterable<Problem> {
  const { address = "" } = entry;
  if (isIP(address) === 0) yield* checkFqdn(address, `${at}.address`);
  yield* checkPortsAndLabels(entry, at, servicePorts);
}

function isSocket({ address = "" }: WorkloadEntry): boolean {
  return address.startsWith(UNIX_PREFIX);
}

function* checkAddress(entry: WorkloadEntry, at: string, how: { readonly namesAllowed: boolean }): Iterable<Problem> {
  const { address = "", network = "", ports = {} } = entry;
  if (address === "") {
    if (network === "") yield error(`${at}.address`, "is required");
    else yield warning(`${at}.address`, `is not set: the gateway of network "${network}" has to find the workload`);
  } else if (isSocket(entry)) {
    yield* checkUnixPath(address.slice(UNIX_PREFIX.length), `${at}.address`);
    if (Object.keys(ports).length > 0) yield error(`${at}.ports`, "cannot be set for a socket file");
  } else if (isIP(address) === 0) {
    if (how.namesAllowed) yield* checkFqdn(address, `${at}.address`);
    else yield error(`${at}.address`, `must be an IP address for resolution STATIC, not "${address}"`);
  }
}

function* checkPortsAndLabels(
  entry: WorkloadEntry,
  at: string,
  servicePorts: ReadonlySet<string> | undefined,
): Iterable<Problem> {
  for (const [name, port] of Object.entries(entry.ports ?? {})) {
    const field = formatField(`${at}.ports`, name);
    if (servicePorts?.has(name) === false) yield error(field, "is not the name of a port of the service");
    yield* checkDnsLabel(name, field);
    yield* checkPort(port, field);
  }
  yield* checkLabels(entry.labels, `${at}.labels`);
}
