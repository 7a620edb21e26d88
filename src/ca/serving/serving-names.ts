export interface ServingNamesInput {
  /** Of the control plane. */
  readonly namespace: string;
  /** `cluster.local` */
  readonly domain: string;
  /** Empty or `default` when there is one control plane only. */
  readonly revision: string;
  /** Host under which the mesh config tells proxies to reach us. */
  readonly discoveryHost: string;
  /** Further hosts of the operator's choice. */
  readonly customHosts: readonly string[];
}

const SYSTEM_NAMESPACE = "istio-system";
const HOSTS = ["istiod", "istiod-remote", "istio-pilot"];
const LOCAL = ["localhost", "127.0.0.1"];

/** Names and addresses under which proxies reach the control plane, sorted. */
export function servingNames(input: ServingNamesInput): readonly string[] {
  const { namespace, domain, revision, discoveryHost, customHosts } = input;
  const ofRevision = revision === "" || revision === "default" ? [] : [`istiod-${revision}`];
  const inCluster = [SYSTEM_NAMESPACE, namespace].flatMap((where) => [
    ...[...HOSTS, ...ofRevision].map((host) => `${host}.${where}.svc`),
    `istiod.${where}.svc.${domain}`,
  ]);
  const names = [...inCluster, ...LOCAL, discoveryHost, ...customHosts];
  return [...new Set(names.filter((name) => name !== ""))].sort();
}
