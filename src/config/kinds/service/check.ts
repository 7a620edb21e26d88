import { isIP } from "node:net";
import { checkLabels } from "../../checks/labels.ts";
import { checkDnsLabel, checkFqdn } from "../../checks/names.ts";
import { checkPort } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem } from "../../schema/problem.ts";
import type { Service } from "./schema.ts";

/** Checks a Service as far as Kubernetes would refuse it, since here no API server has looked at it before. */
export function* checkService({ spec, metadata }: ConfigObject<Service>): Iterable<Problem> {
  const { ports = [], clusterIP = "", type, externalName = "" } = spec;
  if (metadata.name !== "") yield* checkDnsLabel(metadata.name, "metadata.name");
  if (!["", "None"].includes(clusterIP) && isIP(clusterIP) === 0) {
    yield error("spec.clusterIP", `must be an IP address or None, not "${clusterIP}"`);
  }
  if (type === "ExternalName") yield* checkFqdn(externalName, "spec.externalName");
  else if (ports.length === 0 && clusterIP !== "None") yield error("spec.ports", "needs at least one port");
  yield* checkLabels(spec.selector, "spec.selector");
  yield* checkPorts(ports);
}

function* checkPorts(ports: NonNullable<Service["ports"]>): Iterable<Problem> {
  const names = new Set<string>();
  for (const [i, { name = "", port, targetPort }] of ports.entries()) {
    const at = `spec.ports[${i}]`;
    yield* checkPort(port, `${at}.port`);
    if (typeof targetPort === "number") yield* checkPort(targetPort, `${at}.targetPort`);
    if (name === "" && ports.length > 1) yield error(`${at}.name`, "is required when there are several ports");
    else if (names.has(name)) yield error(`${at}.name`, `is there twice: "${name}"`);
    if (name !== "") yield* checkDnsLabel(name, `${at}.name`);
    names.add(name);
  }
}
