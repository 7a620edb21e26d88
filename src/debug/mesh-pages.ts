/** Pages about the configuration in effect, in Istio's shape. */
import type { ConfigObject } from "#config/config-object.ts";
import { apiForm } from "./api-form.ts";
import { API_VERSIONS, NETWORKING } from "./configz.ts";
import type { DebugState, PageRequest } from "./page.ts";
import { inScope } from "./scope.ts";

/** The mesh config in effect. */
export function mesh({ source }: DebugState): unknown {
  return apiForm(source.current().mesh);
}

/** Authorization policies by namespace. */
export function authorizationz({ source }: DebugState, { scope }: PageRequest): object {
  const { authorizationPolicies, mesh: config } = source.current();
  const visible = authorizationPolicies.filter(({ metadata }) => inScope(scope, metadata.namespace));
  return {
    authorization_policies: {
      namespace_to_policies: Object.fromEntries(
        [...Map.groupBy(visible, ({ metadata }) => metadata.namespace)].map(([namespace, policies]) => [
          namespace,
          policies.map(policyOf),
        ]),
      ),
      root_namespace: config.rootNamespace,
    },
  };
}

function policyOf({ metadata, spec }: ConfigObject): object {
  const { name, namespace, annotations } = metadata;
  return {
    name,
    namespace,
    annotations: Object.keys(annotations).length > 0 ? annotations : null,
    spec: apiForm(spec),
  };
}

/** What pushes are made of. */
export function pushContext(state: DebugState, request: PageRequest): object {
  const { authorization_policies } = Object(authorizationz(state, request));
  return { AuthorizationPolicies: authorization_policies, NetworkGateways: null, UnresolvedGateways: null };
}

/** Kinds of objects that are in effect. */
export function resourcesz(): readonly object[] {
  return WATCHED.map((kind) => {
    const [group = "", version = ""] = (API_VERSIONS[kind] ?? NETWORKING).split("/");
    return version === "" ? { group: "", version: group, kind } : { group, version, kind };
  });
}

const WATCHED = [
  "AuthorizationPolicy",
  "ConfigMap",
  "DestinationRule",
  "EnvoyFilter",
  "Gateway",
  "PeerAuthentication",
  "RequestAuthentication",
  "Secret",
  "Service",
  "ServiceEntry",
  "Sidecar",
  "VirtualService",
  "WorkloadEntry",
];
