/** Listeners as gRPC takes them: a client's name where routes are found, a server's how it is called. */
import { isDryRun } from "#config/terms/dry-run.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RBAC_Action as Action } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import { HTTPFaultSchema } from "#gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts";
import { RBACSchema } from "#gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts";
import { RouterSchema } from "#gen/envoy/extensions/filters/http/router/v3/router_pb.ts";
import {
  type HttpFilterSchema,
  HttpConnectionManagerSchema as ManagerSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import type { Session } from "#model/service/service.ts";
import type { AuthorizationInput } from "../authorization/filters.ts";
import { MATCHES_EVERYTHING, MATCHES_NOTHING, rbacPolicy } from "../authorization/rule.ts";
import { SESSION_FILTER, sessionConfig } from "../filters/session.ts";
import { bytesOf, type Init, pack } from "../wire/encode.ts";
import { downstreamSocket } from "./tls.ts";

/** What a client's listener depends on. */
export interface ClientListenerInput {
  /** As it was asked for: `greeter.default:7070`. */
  readonly name: string;
  readonly address: string;
  /** Of the other family. */
  readonly moreAddresses: readonly string[];
  readonly port: number;
  readonly routeName: string;
  /** Calls stay with one endpoint. */
  readonly session: Session | undefined;
}

/** Canonical bytes of a listener that only says where a client finds its routes. */
export function clientListener(input: ClientListenerInput): Uint8Array {
  const { name, address, moreAddresses, port, routeName, session } = input;
  const manager = pack(ManagerSchema, {
    httpFilters: [...(session ? [filterOf(SESSION_FILTER, sessionConfig(session))] : []), FAULT, ROUTER],
    routeSpecifier: { case: "rds", value: { configSource: ADS, routeConfigName: routeName } },
  });
  return bytesOf(ListenerSchema, {
    name,
    address: socketAddress(address, port),
    additionalAddresses: moreAddresses.map((more) => ({ address: socketAddress(more, port) })),
    apiListener: { apiListener: manager },
  });
}

/** What a server's listener depends on. */
export interface ServerListenerInput extends Pick<AuthorizationInput, "policies" | "trustDomains"> {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly isMutualTls: boolean;
}

/** Canonical bytes of a server's listener. gRPC refuses listener filters, and cannot tell TLS from plain text. */
export function serverListener(input: ServerListenerInput): Uint8Array {
  const suffix = input.isMutualTls ? "mtls" : "plaintext";
  const manager = pack(ManagerSchema, {
    httpFilters: [...authorization(input), ROUTER],
    routeSpecifier: {
      case: "routeConfig",
      value: {
        name: "inbound",
        virtualHosts: [
          {
            domains: ["*"],
            routes: [
              {
                match: { pathSpecifier: { case: "prefix", value: "/" } },
                action: { case: "nonForwardingAction", value: {} },
              },
            ],
          },
        ],
      },
    },
  });
  return bytesOf(ListenerSchema, {
    name: input.name,
    address: socketAddress(input.host, input.port),
    filterChains: [
      {
        name: `inbound-${suffix}`,
        filters: [{ name: `inbound-hcm${suffix}`, configType: { case: "typedConfig", value: manager } }],
        ...(input.isMutualTls && { transportSocket: downstreamSocket() }),
      },
    ],
  });
}

/** gRPC knows what is allowed and what is denied, and wants each filter to have a name of its own. */
function authorization(input: ServerListenerInput): Init<typeof HttpFilterSchema>[] {
  const denied = rulesOf(input, "DENY");
  const allowed = rulesOf(input, "ALLOW");
  return [
    ...(denied === undefined ? [] : [filterOf("envoy.filters.http.rbac.DENY", denied)]),
    ...(allowed === undefined ? [] : [filterOf("envoy.filters.http.rbac", allowed)]),
  ];
}

/** A policy that allows nothing is one, though it has no rules: Istio leaves it out here, and lets everybody in. */
function rulesOf({ policies, trustDomains }: ServerListenerInput, action: "ALLOW" | "DENY") {
  const allows = action === "ALLOW";
  const rules = policies
    .filter(({ spec, metadata }) => (spec.action ?? "ALLOW") === action && !isDryRun(metadata))
    .flatMap(({ metadata: { namespace, name }, spec: { rules: own = [], unreadable } }) => {
      if (unreadable !== undefined) return [[`ns[${namespace}]-policy[${name}]-unreadable`, MATCHES_EVERYTHING]];
      if (own.length === 0) return allows ? [[`${namespace}-${name}-0`, MATCHES_NOTHING]] : [];
      const use = { forTcp: false, allows, trustDomains, namespace };
      return own.map((rule, i) => [`${namespace}-${name}-${i}`, rbacPolicy(rule, use) ?? MATCHES_NOTHING]);
    });
  if (rules.length === 0) return undefined;
  return pack(RBACSchema, { rules: { action: Action[action], policies: Object.fromEntries(rules) } });
}

const ADS = { configSourceSpecifier: { case: "ads", value: {} } } as const;
const FAULT = filterOf("envoy.filters.http.fault", pack(HTTPFaultSchema, {}));
const ROUTER = filterOf("envoy.filters.http.router", pack(RouterSchema, {}));

function filterOf(name: string, value: ReturnType<typeof pack>): Init<typeof HttpFilterSchema> {
  return { name, configType: { case: "typedConfig", value } };
}

function socketAddress(address: string, port: number) {
  const portSpecifier = { case: "portValue", value: port } as const;
  return { address: { case: "socketAddress", value: { address, portSpecifier } } } as const;
}
