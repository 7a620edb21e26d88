/** The files of a starter folder, as texts. */
import type { FoundService } from "./found-service.ts";

export interface StarterInput {
  readonly name: string;
  readonly services: readonly FoundService[];
  /** Account that may read the folder, where nobody may not. */
  readonly user: string | undefined;
  /** Free port of the machine for the gateway. */
  readonly hostPort: number;
}

/** Files by their names in the folder. */
export function starterFiles(input: StarterInput): Readonly<Record<string, string>> {
  const startable = input.services.filter(({ command }) => command !== undefined);
  const entry = entryOf(startable);
  return {
    "mesh.yaml": meshFile(input, entry),
    "services.yaml": startable.map(serviceObject).join("---\n"),
    ...(entry === undefined ? {} : { "gateway.yaml": gatewayObjects(entry) }),
  };
}

const ENTRY_NAMES = /^(web|www|frontend|front|gateway|app|api|ui)$/;

/** What people open: the service with such a name, or the first that speaks HTTP. */
function entryOf(services: readonly FoundService[]): FoundService | undefined {
  const http = services.filter(({ port }) => protocolOf(port) === "http");
  return http.find(({ name }) => ENTRY_NAMES.test(name)) ?? http[0];
}

function meshFile({ name, services, user, hostPort }: StarterInput, entry: FoundService | undefined): string {
  const commands = new Set(services.filter(({ command }) => command !== undefined).map((service) => service.name));
  return `# How each workload is started on one machine, where a cluster would have a Deployment.
# Every field: docs/reference/mesh-yaml.md
apiVersion: mizzen.dev/v1alpha1
kind: Mesh
metadata:
  name: ${name}
spec:
  # Files and folders with Service, VirtualService and all other objects, as for a cluster. They are watched while it runs.
  config: [${["services.yaml", ...(entry === undefined ? [] : ["gateway.yaml"])].join(", ")}]
  meshConfig:
    accessLogFile: /dev/stdout      # one line for each request: mizzen logs WORKLOAD --access
  workloads:
${services.map((service) => workload(service, user, commands)).join("")}${entry === undefined ? "" : gateway(entry, hostPort)}`;
}

function workload(service: FoundService, user: string | undefined, commands: ReadonlySet<string>): string {
  const { name, command, workingDir, port, env, source } = service;
  const after = service.after.filter((other) => commands.has(other));
  const lines = [
    `- name: ${name}   # from ${source}`,
    `  serviceAccount: ${name}   # its identity: spiffe://cluster.local/ns/default/sa/${name}`,
    `  labels: {app: ${name}, version: v1}`,
    `  command: ${JSON.stringify(command ?? ["how", "is", "it", "started", "here?"])}`,
    ...(workingDir === undefined ? [] : [`  workingDir: ${JSON.stringify(workingDir)}`]),
    ...(Object.keys(env).length === 0 ? [] : [`  env: ${JSON.stringify(env)}`]),
    ...(user === undefined ? [] : [`  user: ${JSON.stringify(user)}   # nobody else may read this folder`]),
    ...(after.length === 0 ? [] : [`  after: ${JSON.stringify(after)}`]),
    `  ports: [${port}]`,
    `  readiness: {tcpSocket: {port: ${port}}}   # or httpGet: {path: /health, port: ${port}}`,
  ];
  const prefix = command === undefined ? "  # " : "  ";
  return lines.map((line) => `${prefix}${line}\n`).join("");
}

function gateway({ name }: FoundService, hostPort: number): string {
  return `  gateways:
  - name: istio-ingressgateway
    labels: {istio: ingressgateway}
    ports: [8080]
    publish: ["127.0.0.1:${hostPort}:8080"]   # open http://127.0.0.1:${hostPort}/: it leads to ${name}, see gateway.yaml
`;
}

/** By the ports that everybody knows; the name of a port tells the mesh what is spoken there. */
const PROTOCOLS: Readonly<Record<number, string>> = {
  1433: "tcp",
  3306: "tcp",
  5432: "tcp",
  5672: "tcp",
  6379: "tcp",
  9042: "tcp",
  9092: "tcp",
  11211: "tcp",
  27017: "tcp",
  50051: "grpc",
};

function protocolOf(port: number): string {
  return PROTOCOLS[port] ?? "http";
}

function serviceObject({ name, port }: FoundService): string {
  const protocol = protocolOf(port);
  return `# Others call it as ${protocol === "http" ? "http://" : ""}${name}:${port}
apiVersion: v1
kind: Service
metadata:
  name: ${name}
spec:
  selector:
    app: ${name}
  ports:
  - name: ${protocol}   # http, http2, grpc, tcp or tls: what the name starts with is what the mesh takes it for
    port: ${port}
`;
}

function gatewayObjects({ name, port }: FoundService): string {
  return `# What the gateway listens for, and where it leads.
apiVersion: networking.istio.io/v1
kind: Gateway
metadata:
  name: ${name}
spec:
  selector:
    istio: ingressgateway
  servers:
  - port:
      number: 8080
      name: http
      protocol: HTTP
    hosts:
    - "*"
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: ${name}
spec:
  hosts:
  - "*"
  gateways:
  - ${name}
  http:
  - route:
    - destination:
        host: ${name}
        port:
          number: ${port}
`;
}
