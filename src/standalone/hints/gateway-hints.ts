/** Gateways whose servers and published ports do not meet. */

import type { Gateway } from "#config/kinds/gateway/schema.ts";
import type { Service } from "#config/kinds/service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";
import type { Member } from "../mesh/mesh.ts";

/** What opens ports of gateways beside Gateways. */
const OPENERS = new Set(["Ingress", "EnvoyFilter"]);

/** One line for each. */
export function gatewayHints(members: readonly Member[], objects: readonly ConfigObject[]): readonly string[] {
  const published = members.filter(({ proxy, publish }) => proxy === "router" && publish.length > 0);
  return [...closedGateways(published, objects), ...unpublishedServers(published, objects)];
}

/** Published gateways that nothing opens a port of. */
function closedGateways(published: readonly Member[], objects: readonly ConfigObject[]): readonly string[] {
  if (objects.some(({ kind }) => OPENERS.has(kind))) return [];
  const selectors = objects.filter(({ kind }) => kind === "Gateway").map(({ spec }) => (spec as Gateway).selector);
  return published
    .filter(({ labels }) => !selectors.some((selector) => hasLabels(labels, selector)))
    .map(({ name, labels }) => {
      const own = Object.entries(labels).map(([label, value]) => `${label}=${value}`);
      return `gateway "${name}" is selected by no Gateway (labels ${own.join(", ") || "none"}): nothing answers at the ports that it publishes; add a Gateway, or correct its selector`;
    });
}

/** Servers of Gateways at ports that the machine does not lead to, though others of the same gateway are published. */
function unpublishedServers(published: readonly Member[], objects: readonly ConfigObject[]): readonly string[] {
  return objects
    .filter(({ kind }) => kind === "Gateway")
    .flatMap(({ metadata, spec, origin }) => {
      const { selector = {}, servers = [] } = spec as Gateway;
      const numbers = new Set(servers.flatMap(({ port }) => port?.number ?? []));
      const where = origin === undefined ? "" : `${origin.file}:${origin.line}: `;
      return published
        .filter(({ labels }) => hasLabels(labels, selector))
        .flatMap((member) => unpublished(member, numbers, objects).map((port) => ({ member, port })))
        .map(({ member, port }) => {
          const known = member.publish.map((entry) => entry.port).join(", ");
          return `${where}Gateway "${metadata.name}" opens port ${port} of "${member.name}", of which only ${known} is published: this machine does not lead to it; add "127.0.0.1:0:${port}" to its publish`;
        });
    });
}

/** Ports that servers with these numbers open and that nothing leads to. */
function unpublished(
  member: Member,
  numbers: ReadonlySet<number>,
  objects: readonly ConfigObject[],
): readonly number[] {
  const services = objects.filter(
    ({ kind, metadata, spec }) =>
      kind === "Service" && metadata.namespace === member.namespace && selects(spec, member),
  );
  const ports = services.flatMap(({ spec }) => (spec as Service).ports ?? []);
  const opened = [...numbers].flatMap((number) => {
    const targets = ports
      .filter(({ port }) => port === number)
      .map(({ targetPort }) => portOf(member, targetPort, number));
    return targets.length > 0 ? targets : [number];
  });
  return [...new Set(opened)].filter((port) => !member.publish.some((entry) => entry.port === port));
}

function selects(spec: unknown, { labels }: Member): boolean {
  const { selector = {} } = spec as Service;
  return Object.keys(selector).length > 0 && hasLabels(labels, selector);
}

function portOf({ ports }: Member, target: string | number | undefined, number: number): number {
  if (target === undefined) return number;
  return ports.find(({ name }) => name === target)?.port ?? (Number(target) || number);
}
