/** Objects of the user's API as YAML documents, for tests that need a few of them. */

const API_VERSIONS: Readonly<Record<string, string>> = {
  Service: "v1",
  EnvoyFilter: "networking.istio.io/v1alpha3",
  ProxyConfig: "networking.istio.io/v1beta1",
  AuthorizationPolicy: "security.istio.io/v1",
  PeerAuthentication: "security.istio.io/v1",
  RequestAuthentication: "security.istio.io/v1",
};

/** One document; `where` is `name` or `namespace/name`. */
export function object(kind: string, where: string, spec: object, metadata: object = {}): string {
  const [name, namespace = "default"] = where.split("/").reverse();
  const apiVersion = API_VERSIONS[kind] ?? "networking.istio.io/v1";
  return `${JSON.stringify({ apiVersion, kind, metadata: { name, namespace, ...metadata }, spec })}\n---\n`;
}

/** A Kubernetes service, in front of the workloads whose label `app` is its name. */
export function service(where: string, ...ports: readonly object[]): string {
  const name = where.split("/").at(-1);
  return object("Service", where, { selector: { app: name }, ports });
}

/** A workload with a proxy of the mesh. */
export function workload(where: string, address: string, spec: object = {}): string {
  const app = (where.split("/").at(-1) ?? "").replace(/-\d+$/, "");
  return object("WorkloadEntry", where, { address, labels: { app }, serviceAccount: app, ...spec });
}
