/** A mesh in which each switch of the control plane changes something, and how to look at that. */
import type { DescMessage, JsonValue } from "@bufbuild/protobuf";
import { toJson } from "@bufbuild/protobuf";
import { ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { allDescriptors } from "#lib/descriptors.ts";
import type { Features } from "#model/features.ts";
import { meshOf, proxyOf } from "./mesh.ts";
import { translated } from "./translated.ts";

const YAML = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: a, namespace: default}
spec:
  hosts: [a.example]
  location: MESH_INTERNAL
  addresses: [10.1.1.1]
  ports:
  - {number: 80, name: http, protocol: HTTP}
  - {number: 27017, name: mongo, protocol: MONGO}
  - {number: 3306, name: mysql, protocol: MySQL}
  - {number: 6379, name: redis, protocol: Redis}
  - {number: 7000, name: any}
  resolution: STATIC
  endpoints: [{address: 10.0.0.1, labels: {app: a}, serviceAccount: a}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s, namespace: default, labels: {istio.io/persistent-session: "sess:/p", my-header: x-my}}
spec:
  hosts: [s.example]
  location: MESH_INTERNAL
  addresses: [10.1.1.2]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.0.0.3}, {address: 10.0.0.4, labels: {istio.io/draining: "yes"}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ext, namespace: default, labels: {version: v3}}
spec:
  hosts: [ext.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: DNS
  endpoints: [{address: e1.example}]
---
apiVersion: v1
kind: Service
metadata: {name: headless, namespace: default}
spec: {clusterIP: None, ports: [{name: tcp, port: 9000}], selector: {app: h}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: routes, namespace: default}
spec:
  hosts: [a.example]
  http:
  - match: [{uri: {prefix: /s}}]
    route: [{destination: {host: s.example}}]
    mirror: {host: ext.example}
  - route: [{destination: {host: a.example}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gw, namespace: istio-system}
spec:
  selector: {istio: ingressgateway}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}
  - port: {number: 443, name: https, protocol: HTTPS}
    hosts: [sec.example]
    tls: {mode: SIMPLE, credentialName: c, cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256, AES128-SHA]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: other, namespace: default}
spec: {selector: {istio: ingressgateway}, servers: [{port: {number: 81, name: http, protocol: HTTP}, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: entry, namespace: istio-system}
spec: {hosts: [x.example, y.example], gateways: [gw], http: [{route: [{destination: {host: a.example}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: one, namespace: default}
spec: {host: a.example, exportTo: ["."], subsets: [{name: v1, labels: {app: a}}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: two, namespace: default}
spec: {host: a.example, exportTo: ["*"], subsets: [{name: v2, labels: {app: b}}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: outside, namespace: default}
spec: {host: ext.example, trafficPolicy: {tls: {mode: MUTUAL, clientCertificate: /c, privateKey: /k}}}
`;
const NETWORKS = { n1: { endpoints: [{ fromCidr: "10.5.0.0/16" }, { fromCidr: "10.4.0.0/16" }] } };
const ISTIO = ["envoy.filters.http.peer_metadata", "envoy.filters.network.metadata_exchange", "istio.alpn"];
const FILES = { TLS_CLIENT_CERT_CHAIN: "/x/c", TLS_CLIENT_KEY: "/x/k", TLS_CLIENT_ROOT_CERT: "/x/r" };
const PROXIES = {
  sidecar: proxyOf({ ip: "10.0.0.1", labels: { app: "a" }, extensions: ISTIO }),
  "sidecar with files": proxyOf({ ip: "10.0.0.1", labels: { app: "a" }, extensions: ISTIO, metadata: FILES }),
  router: proxyOf({
    type: "router",
    namespace: "istio-system",
    labels: { istio: "ingressgateway" },
    extensions: ISTIO,
  }),
};

type Kind = "listener" | "cluster" | "route" | "endpoints";
const SCHEMAS: Readonly<Record<Kind, DescMessage>> = {
  listener: ListenerSchema,
  cluster: ClusterSchema,
  route: RouteConfigurationSchema,
  endpoints: ClusterLoadAssignmentSchema,
};

/** All values of a field anywhere in a resource, in order; undefined when there is no such resource. */
export function look(
  { proxy = "sidecar", kind, name, field }: Look,
  features: Partial<Features>,
): readonly JsonValue[] | undefined {
  const snapshot = meshOf(YAML, { features });
  const mesh = { ...snapshot.mesh, networks: NETWORKS };
  const all = translated({ ...snapshot, mesh }, PROXIES[proxy]);
  const message = kind === "endpoints" ? all.endpoints(name) : all[`${kind}s`].get(name);
  return message && [...valuesOf(toJson(SCHEMAS[kind], message, { registry: allDescriptors() }), field)];
}

function* valuesOf(json: JsonValue, field: string): Generator<JsonValue> {
  if (json === null || typeof json !== "object") return;
  if (!Array.isArray(json) && json[field] !== undefined) yield json[field];
  for (const value of Object.values(json)) yield* valuesOf(value, field);
}

export interface Look {
  readonly proxy?: keyof typeof PROXIES;
  readonly kind: Kind;
  readonly name: string;
  readonly field: string;
}
export interface Effect extends Look {
  readonly features: Partial<Features>;
  readonly usual: readonly JsonValue[] | undefined;
  readonly changed: readonly JsonValue[] | undefined;
}
