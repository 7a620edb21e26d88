/** Programs without a proxy: the xDS clients of grpc-js and of gRPC's C core (Python) on our control plane. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { Server, ServerCredentials, type sendUnaryData } from "@grpc/grpc-js";
import { createLogger } from "#lib/log/log.ts";
import { memorySource } from "#sources/memory.ts";
import { AdsServer } from "#xds/ads-server.ts";
import { translatedParts } from "#xds/parts/translated-parts.ts";
import { serveMethods } from "../support/grpc-server.ts";

const run = promisify(execFile);
const HERE = import.meta.dirname;
const PYTHON = join(HERE, "../../.cache/grpc-venv/bin/python");
const HOST = "greeter.default.svc.cluster.local";

interface Program {
  readonly name: string;
  readonly command: readonly [string, string];
  readonly skip: string | false;
}
const PROGRAMS: readonly Program[] = [
  { name: "grpc-js", command: [process.execPath, join(HERE, "grpc-js-client.ts")], skip: false },
  {
    name: "Python",
    command: [PYTHON, join(HERE, "grpc-client.py")],
    skip: existsSync(PYTHON) ? false : "no grpcio: run make setup",
  },
];

const asIs = (bytes: Buffer) => bytes;

interface Running extends Disposable {
  readonly port: number;
}

async function serving(server: Server): Promise<Running> {
  const port = await new Promise<number>((resolve, reject) => {
    const insecure = ServerCredentials.createInsecure();
    server.bindAsync("127.0.0.1:0", insecure, (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  return { port, [Symbol.dispose]: () => server.forceShutdown() };
}

/** A server that says its name. */
function greeter(version: string): Promise<Running> {
  const server = new Server();
  const method = { path: "/test.Greeter/Who", requestStream: false, responseStream: false };
  const plain = {
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  };
  server.addService(
    { Who: { ...method, ...plain } },
    { Who: (_: unknown, callback: sendUnaryData<Buffer>) => callback(null, Buffer.from(version)) },
  );
  return serving(server);
}

const mesh = (v1: number, v2: number, routes: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: greeter, namespace: default}
spec:
  hosts: [${HOST}]
  addresses: [10.1.2.3]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7070, name: grpc, protocol: GRPC}]
  endpoints:
  - {address: 127.0.0.1, ports: {grpc: ${v1}}, labels: {version: v1}}
  - {address: 127.0.0.1, ports: {grpc: ${v2}}, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: greeter, namespace: default}
spec:
  host: ${HOST}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
${routes}`;

const TO_V2_BY_HEADER = `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: greeter, namespace: default}
spec:
  hosts: [${HOST}]
  http:
  - match: [{headers: {who: {exact: me}}}]
    route: [{destination: {host: ${HOST}, subset: v2}}]
  - route: [{destination: {host: ${HOST}, subset: v1}}]
    timeout: 10s
`;

function bootstrap(address: string): string {
  return JSON.stringify({
    xds_servers: [{ server_uri: address, channel_creds: [{ type: "insecure" }], server_features: ["xds_v3"] }],
    node: {
      id: "sidecar~127.0.0.1~client.default~default.svc.cluster.local",
      locality: {}, // grpc-js insists on it
      metadata: { GENERATOR: "grpc", NAMESPACE: "default", INSTANCE_IPS: "127.0.0.1" },
    },
  });
}

for (const { name, command, skip } of PROGRAMS) {
  test(`a ${name} client balances over a service's endpoints and follows its routes`, { skip }, async () => {
    const complaints: string[] = [];
    const log = createLogger({ write: (line) => void complaints.push(line), levels: { all: "warn" } });
    using v1 = await greeter("v1");
    using v2 = await greeter("v2");
    const source = memorySource();
    const initial = source.current();
    const ads = new AdsServer({ source, initial, partsOf: translatedParts, log, checksIdentity: false });
    const stop = new AbortController();
    const running = ads.run(stop.signal);
    await using control = await serveMethods(ads.service(async () => undefined));
    const env = { ...process.env, GRPC_XDS_BOOTSTRAP_CONFIG: bootstrap(control.address) };
    const [program, script] = command;
    const calls = async (target: string, header: string): Promise<unknown> => {
      const { stdout } = await run(program, [script, `xds:///${target}`, "20", header], { env, timeout: 40_000 });
      return JSON.parse(stdout);
    };
    source.write({ "mesh.yaml": mesh(v1.port, v2.port, "") });
    const counts = await calls(`${HOST}:7070`, "");
    assert.deepEqual(Object.keys(Object(counts)).sort(), ["v1", "v2"], JSON.stringify(counts));
    source.write({ "mesh.yaml": mesh(v1.port, v2.port, TO_V2_BY_HEADER) });
    assert.deepEqual(await calls("greeter.default:7070", ""), { v1: 20 });
    assert.deepEqual(await calls("greeter:7070", "who=me"), { v2: 20 });
    stop.abort();
    await running;
    assert.deepEqual(complaints, []);
  });
}
