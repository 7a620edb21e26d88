/** Conflicts among Gateways that lead to the same proxies. */

import type { Gateway, GatewayServer } from "#config/kinds/gateway/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { parseProtocol } from "#config/terms/protocol.ts";
import { isHttp } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { Claims, type Conflict, type Search } from "./conflict.ts";

interface Claimed {
  readonly gateway: ConfigObject<Gateway>;
  readonly server: GatewayServer;
}

/** Ports that are taken by another protocol, and server names of TLS that are taken. */
export function* gatewayConflicts({ gateways }: Snapshot): Search {
  const ports = new Claims<Claimed>();
  const names = new Claims<Claimed>();
  for (const gateway of gateways) {
    yield undefined;
    for (const server of gateway.spec.servers ?? []) {
      const place = `${server.bind ?? ""}:${server.port.number}`;
      const claimed = { gateway, server };
      const winner = ports.claim(
        place,
        claimed,
        (other) => !canShare(other.server, server) && haveCommonProxies(other.gateway, gateway),
      );
      if (winner !== undefined) yield portConflict(winner, claimed);
      if (server.tls === undefined) continue;
      for (const host of server.hosts) {
        const name = host.slice(host.indexOf("/") + 1);
        const owner = names.claim(
          `${place} ${name}`,
          claimed,
          (other) => other.server !== server && haveCommonProxies(other.gateway, gateway),
        );
        if (owner !== undefined && winner === undefined) yield nameConflict(owner, claimed, name);
      }
    }
  }
}

function portConflict(winner: Claimed, { gateway, server }: Claimed): Conflict {
  return {
    metric: "pilot_total_rejected_configs",
    what: `port ${server.port.number}, here for ${server.port.protocol},`,
    winner: `${objectKey(winner.gateway)} for ${winner.server.port.protocol}`,
    loser: objectKey(gateway),
    loserNamespace: gateway.metadata.namespace,
    outcome: "this server is left out",
  };
}

function nameConflict(winner: Claimed, { gateway, server }: Claimed, name: string): Conflict {
  return {
    metric: "pilot_total_rejected_configs",
    what: `host "${name}" on port ${server.port.number}`,
    winner: objectKey(winner.gateway),
    loser: objectKey(gateway),
    loserNamespace: gateway.metadata.namespace,
    outcome: "this server is left out",
  };
}

/** Plain HTTP servers share their routes; TLS servers are told apart by server name. */
function canShare(one: GatewayServer, other: GatewayServer): boolean {
  const [a, b] = [parseProtocol(one.port.protocol), parseProtocol(other.port.protocol)];
  if (isHttp(a) || isHttp(b)) return isHttp(a) && isHttp(b);
  return one.tls !== undefined && other.tls !== undefined;
}

/** Whether one selects all that the other selects; an empty selector selects every proxy. */
function haveCommonProxies(a: ConfigObject<Gateway>, b: ConfigObject<Gateway>): boolean {
  const covers = (one: ConfigObject<Gateway>, other: ConfigObject<Gateway>) =>
    Object.entries(one.spec.selector ?? {}).every(([key, value]) => other.spec.selector?.[key] === value);
  return covers(a, b) || covers(b, a);
}
