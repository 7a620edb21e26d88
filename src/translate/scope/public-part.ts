/**
 * What of the mesh a proxy may have that only claims its namespace, as on the plaintext port: services, routes and rules that
 * `exportTo` makes public, and what the root namespace lays down for all workloads. Policies of other namespaces are left out.
 * Where one of them could deny requests to a workload, its proxy denies them all: it must not act as if there were no policy.
 */

import type { AuthorizationPolicy } from "#config/kinds/authorization-policy/schema.ts";
import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { EnvoyFilter } from "#config/kinds/envoy-filter/schema.ts";
import type { PeerAuthentication } from "#config/kinds/peer-authentication/schema.ts";
import type { RequestAuthentication } from "#config/kinds/request-authentication/schema.ts";
import type { Sidecar } from "#config/kinds/sidecar/schema.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { defaultExportTo, isPublic } from "#config/terms/visibility.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Service } from "#model/service/service.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../recipes/indexes.ts";

/** What of the mesh the proxy may have. */
export function seenBy(proxy: Pick<MeshProxy, "isUnproven">, snapshot: Snapshot): Snapshot {
  return proxy.isUnproven === true ? publicPart(snapshot) : snapshot;
}

/** The snapshot itself where nothing in it is private. What is the same in both keeps its identity. */
export function publicPart(snapshot: Snapshot): Snapshot {
  return publicPartOf("", snapshot);
}

const publicPartOf = derived((_: string, snapshot: Snapshot): Snapshot => {
  const { mesh, features, gateways, peerAuthentications } = snapshot;
  const root = mesh.rootNamespace;
  const lists = {
    services: publicServices("", snapshot.services, mesh),
    virtualServices: publicRoutes("", snapshot.virtualServices, mesh),
    destinationRules: publicRules("", snapshot.destinationRules, mesh),
    // A Gateway has no `exportTo`: proxies of any namespace may serve it, unless the mesh keeps it to its own.
    gateways: features.gatewaysOfNamespace && gateways.length > 0 ? [] : gateways,
    sidecars: rootSidecars(root, snapshot.sidecars),
    envoyFilters: rootFilters(root, snapshot.envoyFilters),
    requestAuthentications: rootAuthentications(root, snapshot.requestAuthentications),
    authorizationPolicies: rootPolicies(
      root,
      snapshot.authorizationPolicies,
      snapshot.requestAuthentications,
      peerAuthentications,
    ),
  };
  const isWhole = Object.entries(lists).every(([field, list]) => Reflect.get(snapshot, field) === list);
  // Clients need the modes of the services that they call. Views leave out that of the proxy itself.
  const isOpen = peerAuthentications.every(isIn(root));
  return isWhole && isOpen ? snapshot : { ...snapshot, ...lists, onlyPublic: true };
});

const publicServices = derived((_: string, services: readonly Service[], mesh: MeshConfig) =>
  only(services, ({ exportTo }) => isPublic(exportTo, mesh.defaultServiceExportTo)),
);

const publicRoutes = derived((_: string, routes: readonly ConfigObject<VirtualService>[], mesh: MeshConfig) => {
  const fallback = defaultExportTo(mesh.defaultVirtualServiceExportTo);
  return only(routes, ({ spec }) => isPublic(spec.exportTo, fallback));
});

const publicRules = derived((_: string, rules: readonly ConfigObject<DestinationRule>[], mesh: MeshConfig) => {
  const fallback = defaultExportTo(mesh.defaultDestinationRuleExportTo);
  // One that selects workloads counts in its own namespace only.
  return only(rules, ({ spec }) => spec.workloadSelector === undefined && isPublic(spec.exportTo, fallback));
});

const rootSidecars = derived((root: string, sidecars: readonly ConfigObject<Sidecar>[]) =>
  only(sidecars, (sidecar) => isIn(root)(sidecar) && sidecar.spec.workloadSelector === undefined),
);
const rootFilters = derived((root: string, filters: readonly ConfigObject<EnvoyFilter>[]) => only(filters, isIn(root)));
const rootAuthentications = derived((root: string, policies: readonly ConfigObject<RequestAuthentication>[]) =>
  only(policies, isIn(root)),
);

const rootPolicies = derived(
  (
    root: string,
    authorization: readonly ConfigObject<AuthorizationPolicy>[],
    authentication: readonly ConfigObject<RequestAuthentication>[],
    mtls: readonly ConfigObject<PeerAuthentication>[],
  ) => {
    const able: readonly Selecting[] = [
      ...authorization.filter(({ spec }) => spec.action !== "AUDIT"),
      ...authentication,
      ...mtls.filter(isStrict),
    ];
    const denials = able.filter((policy) => !isIn(root)(policy)).map(denial);
    const shared = only(authorization, isIn(root));
    return denials.length === 0 ? shared : [...shared, ...denials];
  },
);

type Selecting = ConfigObject<Pick<AuthorizationPolicy, "selector" | "targetRef" | "targetRefs">>;

/** Shown by Envoy where it denies a request. */
const DENIAL = "proxy-without-proven-identity";

/** In the place of a policy: it has the same workloads, and tells nothing of what the policy says. */
function denial({ metadata, spec: { selector, targetRef, targetRefs } }: Selecting): ConfigObject<AuthorizationPolicy> {
  return {
    kind: "AuthorizationPolicy",
    metadata: { name: DENIAL, namespace: metadata.namespace, labels: {}, annotations: {}, createdAt: 0 },
    spec: { selector, targetRef, targetRefs, action: "DENY", rules: [{}] },
    origin: undefined,
  };
}

function isStrict({ spec }: ConfigObject<PeerAuthentication>): boolean {
  return [spec.mtls, ...Object.values(spec.portLevelMtls ?? {})].some((mtls) => mtls?.mode === "STRICT");
}

function isIn(namespace: string): (object: ConfigObject) => boolean {
  return ({ metadata }) => metadata.namespace === namespace;
}

/** The objects that meet the condition; the very list where all do. */
function only<T>(list: readonly T[], condition: (one: T) => boolean): readonly T[] {
  return list.every(condition) ? list : list.filter(condition);
}
