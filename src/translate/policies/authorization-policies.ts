/** Which authorization policies a workload is under. */

import type { EnforcedPolicy } from "#config/kinds/unreadable-policy.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { AuthorizationInput } from "../authorization/filters.ts";
import type { ProviderTarget } from "../authorization/provider.ts";
import { outboundCluster } from "../names/names.ts";
import { derived, kept } from "../recipes/indexes.ts";
import { isAttached, type Workload } from "./attachment.ts";
import { serviceNamed } from "./services-by-name.ts";

type PolicyObject = ConfigObject<EnforcedPolicy>;

/**
 * The policies of the root namespace and of the workload's own that select it, and before them what stands in for those that
 * cannot be read.
 */
export function authorizationPoliciesOf(snapshot: Snapshot, workload: Workload): readonly PolicyObject[] {
  const { authorizationPolicies, unreadablePolicies, mesh, features } = snapshot;
  if (authorizationPolicies.length + unreadablePolicies.length === 0) return authorizationPolicies;
  const key = `${mesh.rootNamespace}/${workload.namespace}`;
  const denials = inNamespaces(key, unreadablePolicies).filter(({ kind }) => kind !== "PeerAuthentication");
  return [...denials, ...inNamespaces(key, authorizationPolicies)].filter((policy) =>
    isAttached(policy, workload, features),
  );
}

const inNamespaces = derived((key: string, policies: readonly PolicyObject[]) => {
  const namespaces = key.split("/");
  return policies.filter(({ metadata }) => namespaces.includes(metadata.namespace));
});

/** What the filters of these policies depend on. */
export function authorizationInput(snapshot: Snapshot, policies: readonly PolicyObject[]): AuthorizationInput {
  const { trustDomain, trustDomainAliases } = snapshot.mesh;
  return { policies, trustDomains: [trustDomain, ...trustDomainAliases], provider: providerOf(snapshot, policies) };
}

/** All CUSTOM policies of a workload have to name the same provider. */
function providerOf(snapshot: Snapshot, policies: readonly PolicyObject[]): ProviderTarget | undefined {
  const custom = policies.filter(({ spec }) => spec.action === "CUSTOM");
  const names = new Set(custom.map(({ spec }) => spec.provider?.name));
  const [name] = names;
  if (name === undefined || names.size !== 1) return undefined;
  const provider = snapshot.mesh.extensionProviders.find((one) => one.name === name);
  const { service = "", port = 0 } = provider?.envoyExtAuthzHttp ?? provider?.envoyExtAuthzGrpc ?? {};
  const found = service === "" ? undefined : serviceNamed(snapshot.services, service);
  if (provider === undefined || found === undefined) return undefined;
  const { hostname } = found;
  // Of the same provider and host there is one object: inputs are compared by identity.
  return kept(provider, hostname, [], () => ({ provider, hostname, cluster: outboundCluster(hostname, port) }));
}
