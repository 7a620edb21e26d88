/** networking.istio.io EnvoyFilter: changes to what is generated for Envoy, by those who know its configuration. */
import { atMostOne, field, rule } from "../../schema/field.ts";
import { type Infer, list, map, message, oneof } from "../../schema/message.ts";
import { enumeration, int32, portNumber, regex, string, struct, uint32 } from "../../schema/scalars.ts";
import { labelSelectorSchema, targetRefsField } from "../../selection/schema.ts";

const subFilterSchema = message({ name: string() });

const listenerMatchSchema = message({
  portNumber: uint32(),
  portName: string(),
  filterChain: message({
    name: string(),
    sni: string(),
    transportProtocol: string(),
    applicationProtocols: string(),
    filter: message({ name: string(), subFilter: subFilterSchema }),
    destinationPort: uint32(),
  }),
  listenerFilter: string(),
  name: string(),
});

const routeConfigurationMatchSchema = message({
  portNumber: uint32(),
  portName: string(),
  gateway: string(),
  vhost: message({
    name: string(),
    domainName: string(),
    route: message({ name: string(), action: enumeration("ANY", "ROUTE", "REDIRECT", "DIRECT_RESPONSE") }),
  }),
  name: string(),
});

const clusterMatchSchema = message({ portNumber: uint32(), service: string(), subset: string(), name: string() });

const waypointMatchSchema = message({
  portNumber: portNumber(),
  route: message({ name: string() }),
  filter: message({ name: string(), subFilter: subFilterSchema }),
});

const matchSchema = message(
  {
    /** ANY when unset. */
    context: enumeration("ANY", "SIDECAR_INBOUND", "SIDECAR_OUTBOUND", "GATEWAY", "WAYPOINT"),
    proxy: message({ proxyVersion: regex(), metadata: map(string()) }),
    listener: listenerMatchSchema,
    routeConfiguration: routeConfigurationMatchSchema,
    cluster: clusterMatchSchema,
    waypoint: waypointMatchSchema,
  },
  oneof("listener", "routeConfiguration", "cluster", "waypoint"),
);

const patchSchema = message({
  operation: enumeration(
    "INVALID",
    "MERGE",
    "ADD",
    "REMOVE",
    "INSERT_BEFORE",
    "INSERT_AFTER",
    "INSERT_FIRST",
    "REPLACE",
  ),
  /** The message in its JSON form. */
  value: struct(),
  filterClass: enumeration("UNSPECIFIED", "AUTHN", "AUTHZ", "STATS"),
});

const configPatchSchema = message({
  applyTo: field(
    enumeration(
      "INVALID",
      "LISTENER",
      "FILTER_CHAIN",
      "NETWORK_FILTER",
      "HTTP_FILTER",
      "ROUTE_CONFIGURATION",
      "VIRTUAL_HOST",
      "HTTP_ROUTE",
      "CLUSTER",
      "EXTENSION_CONFIG",
      "BOOTSTRAP",
      "LISTENER_FILTER",
    ),
    { description: "What is changed: LISTENER, HTTP_FILTER, CLUSTER, ..." },
  ),
  match: field(matchSchema, {
    description: "Which of them",
    rules: [
      rule(
        '(has(self.context) && self.context == "WAYPOINT") == has(self.waypoint)',
        "only support waypointMatch when context is WAYPOINT",
      ),
    ],
  }),
  patch: field(patchSchema, { description: "What is done, and with what" }),
});

/** Schema of the spec of an EnvoyFilter. */
export const envoyFilterSchema = field(
  message({
    workloadSelector: labelSelectorSchema,
    targetRefs: targetRefsField,
    configPatches: field(list(configPatchSchema), { description: "Changes, in their order" }),
    /** 0 when unset. */
    priority: field(int32(), { description: "Lower ones are applied first" }),
  }),
  {
    rules: [atMostOne(["workloadSelector", "targetRefs"], "only one of targetRefs or workloadSelector can be set")],
  },
);

/** The spec of an EnvoyFilter. */
export type EnvoyFilter = Infer<typeof envoyFilterSchema>;
/** One change: where, and what. */
export type ConfigPatch = Infer<typeof configPatchSchema>;
/** What a change applies to. */
export type PatchMatch = Infer<typeof matchSchema>;
/** Which listeners, and which parts of them. */
export type ListenerMatch = Infer<typeof listenerMatchSchema>;
/** Which route configurations, and which parts of them. */
export type RouteConfigurationMatch = Infer<typeof routeConfigurationMatchSchema>;
/** Which clusters. */
export type ClusterMatch = Infer<typeof clusterMatchSchema>;
