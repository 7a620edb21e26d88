/** The configuration that the load runs on, as files: services with an HTTP and a TCP port, every tenth with a route. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface MeshShape {
  readonly services: number;
  readonly proxies: number;
  /** Every two proxies are the endpoints of one service, so that inbound configuration differs between proxies. */
  readonly own: boolean;
  /** Namespaces over which such proxies and their services are spread: each is an outbound view of its own. One when not given. */
  readonly namespaces?: number;
  /**
   * The proxies are routers of one Gateway with so many virtual services, each with a host of its own. Services are then
   * outside the mesh, so that a real Envoy among the routers needs no certificate.
   */
  readonly routes?: number;
}

/** The routes of that Gateway. */
export const GATEWAY_ROUTES = "http.8080";

/** Where a simulated proxy and the services in front of it are. */
export function proxyNamespace({ own, namespaces = 1 }: MeshShape, index: number): string {
  return own && namespaces > 1 ? `ns-${(index >> 1) % namespaces}` : "default";
}

/** Address of a simulated sidecar. */
export function proxyAddress(index: number): string {
  return `10.1.${index >> 8}.${index & 255}`;
}

export function serviceHost(index: number): string {
  return `svc-${index}.default.svc.cluster.local`;
}

const GATEWAY = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: gateway, namespace: default}
spec:
  selector: {app: gateway}
  servers: [{port: {number: 8080, name: http, protocol: HTTP}, hosts: ["*"]}]
`;

export class MeshFolder {
  readonly #folder: string;
  readonly #shape: MeshShape;

  constructor(folder: string, shape: MeshShape) {
    this.#folder = folder;
    this.#shape = shape;
  }

  /** All files, before the control plane starts. */
  prepare(): void {
    mkdirSync(this.#folder, { recursive: true });
    const { services, routes } = this.#shape;
    for (let index = 0; index < services; index++) this.putService(index, "10.3.0.1");
    if (routes !== undefined) this.#put("gateway.yaml", GATEWAY);
    for (let index = 0; index < (routes ?? services); index += routes === undefined ? 10 : 1) this.putRoute(index, 5);
  }

  /** A service, with one endpoint of that address. */
  putService(index: number, address: string): void {
    const own = this.#shape.own ? [2 * index, 2 * index + 1].filter((proxy) => proxy < this.#shape.proxies) : [];
    const first = own.length > 0 ? own.map(proxyAddress) : [`10.2.${(index >> 8) & 255}.${index & 255}`];
    const endpoints = [...first.map((ip) => [ip, "v1"]), [address, "v2"]];
    this.#put(
      `svc-${index}.yaml`,
      `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: svc-${index}, namespace: ${own.length > 0 ? proxyNamespace(this.#shape, 2 * index) : "default"}}
spec:
  hosts: [${serviceHost(index)}]
  addresses: [10.${96 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}]
  ports: [{number: 8000, name: http, protocol: HTTP}, {number: 9000, name: tcp, protocol: TCP}]
  resolution: STATIC
  location: ${this.#shape.routes === undefined ? "MESH_INTERNAL" : "MESH_EXTERNAL"}
  endpoints:
${endpoints.map(([ip, version]) => `  - {address: ${ip}, labels: {app: svc-${index}, version: ${version}}}`).join("\n")}
`,
    );
  }

  putRoute(index: number, timeoutSeconds: number): void {
    const { services, routes } = this.#shape;
    const target = serviceHost(index % services);
    const [host, gateways] = routes === undefined ? [target, "mesh"] : [`host-${index}.example.com`, "gateway"];
    this.#put(
      `vs-${index}.yaml`,
      `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: vs-${index}, namespace: default}
spec:
  hosts: [${host}]
  gateways: [${gateways}]
  http: [{timeout: ${timeoutSeconds}s, route: [{destination: {host: ${target}, port: {number: 8000}}}]}]
`,
    );
  }

  /** As editors and kubelets do it: the file is complete when it appears. */
  #put(name: string, text: string): void {
    const file = join(this.#folder, name);
    writeFileSync(`${file}.tmp`, text);
    renameSync(`${file}.tmp`, file);
  }
}
