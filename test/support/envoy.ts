/**
 * Asks the real Envoy whether it would take resources. Many proxies' resources go into one run, because starting Envoy is
 * what takes time: names are made different by a prefix and ports by counting, everything else stays as it is.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { BootstrapSchema } from "#gen/envoy/config/bootstrap/v3/bootstrap_pb.ts";
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import type { Address } from "#gen/envoy/config/core/v3/address_pb.ts";
import { ApiConfigSource_ApiType, ApiVersion } from "#gen/envoy/config/core/v3/config_source_pb.ts";
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { type Listener, ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { RouterSchema } from "#gen/envoy/extensions/filters/http/router/v3/router_pb.ts";
import { HttpConnectionManagerSchema } from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";

const ENVOY = process.env.ENVOY ?? join(import.meta.dirname, "../../.cache/envoy");

/** Why there is no Envoy to ask; undefined when there is one. A test passes it as its `skip`. */
export const NO_ENVOY: string | undefined = existsSync(ENVOY) ? undefined : "no Envoy: run `make setup`";

/** Encoded resources of one proxy. */
export interface EnvoyResources {
  readonly clusters: readonly Uint8Array[];
  readonly listeners: readonly Uint8Array[];
  readonly routes: readonly Uint8Array[];
  readonly endpoints: readonly Uint8Array[];
}

/** Fails the test with Envoy's words when it refuses anything. `proxies` are keyed by a name for messages. */
export async function acceptedByEnvoy(proxies: ReadonlyMap<string, EnvoyResources>): Promise<void> {
  for (const [name, resources] of proxies) checkDistinct(name, resources);
  const folder = await mkdtemp(join(tmpdir(), "mizzen-envoy-"));
  try {
    const file = join(folder, "bootstrap.pb");
    await writeFile(file, toBinary(BootstrapSchema, bootstrapOf(proxies)));
    const log = join(folder, "log.txt");
    const code = await run(["--mode", "validate", "-c", file, "--log-level", "error"], log);
    assert.equal(code, 0, `Envoy refuses the configuration:\n${await readFile(log, "utf8")}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** What the renaming below would hide. */
function checkDistinct(name: string, { listeners, clusters, routes }: EnvoyResources): void {
  const decoded = listeners.map((bytes) => fromBinary(ListenerSchema, bytes));
  const addresses = decoded.flatMap(({ address, additionalAddresses }) =>
    [address, ...additionalAddresses.map((more) => more.address)].map((one) => JSON.stringify(one?.address.value)),
  );
  assertDistinct(`${name}: addresses of listeners`, addresses);
  assertDistinct(
    `${name}: names of listeners`,
    decoded.map((listener) => listener.name),
  );
  assertDistinct(
    `${name}: clusters`,
    clusters.map((bytes) => fromBinary(ClusterSchema, bytes).name),
  );
  assertDistinct(
    `${name}: routes`,
    routes.map((bytes) => fromBinary(RouteConfigurationSchema, bytes).name),
  );
}

function assertDistinct(what: string, values: readonly (string | undefined)[]): void {
  const twice = values.filter((value, i) => values.indexOf(value) !== i);
  assert.deepEqual(twice, [], `${what} are there twice`);
}

function bootstrapOf(proxies: ReadonlyMap<string, EnvoyResources>) {
  const listeners: Listener[] = [];
  const clusters: Cluster[] = [grpcCluster("xds-grpc"), grpcCluster("sds-grpc")];
  // What many proxies have is asked once.
  const asked = new Set<string>();
  const unasked = (kind: keyof EnvoyResources, resources: EnvoyResources) =>
    resources[kind].filter((bytes) => {
      const { size } = asked;
      return asked.add(`${kind} ${Buffer.from(bytes).toString("latin1")}`).size > size;
    });
  for (const [proxy, resources] of proxies) {
    const prefix = `${proxy}/`;
    for (const bytes of unasked("listeners", resources)) {
      listeners.push(renamed(fromBinary(ListenerSchema, bytes), prefix));
    }
    for (const bytes of unasked("routes", resources)) listeners.push(routeListener(bytes, prefix));
    for (const bytes of unasked("clusters", resources)) {
      clusters.push(renamed(fromBinary(ClusterSchema, bytes), prefix));
    }
    for (const bytes of unasked("endpoints", resources)) clusters.push(endpointCluster(bytes, prefix));
  }
  let port = 10_000;
  for (const listener of listeners) {
    for (const address of [listener.address, ...listener.additionalAddresses.map((more) => more.address)]) {
      movePort(address, port++);
    }
  }
  return create(BootstrapSchema, {
    node: { id: "sidecar~10.0.0.1~test.test~test.svc.cluster.local", cluster: "test" },
    staticResources: { listeners, clusters },
    dynamicResources: {
      adsConfig: {
        apiType: ApiConfigSource_ApiType.DELTA_GRPC,
        transportApiVersion: ApiVersion.V3,
        grpcServices: [{ targetSpecifier: { case: "envoyGrpc", value: { clusterName: "xds-grpc" } } }],
      },
    },
  });
}

function renamed<Resource extends { name: string }>(resource: Resource, prefix: string): Resource {
  resource.name = prefix + resource.name;
  return resource;
}

function movePort(address: Address | undefined, port: number): void {
  if (address?.address.case === "socketAddress")
    address.address.value.portSpecifier = { case: "portValue", value: port };
}

/** Routes are checked where they are used. */
function routeListener(bytes: Uint8Array, prefix: string): Listener {
  const routes = fromBinary(RouteConfigurationSchema, bytes);
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix: "routes",
    routeSpecifier: { case: "routeConfig", value: routes },
    httpFilters: [
      {
        name: "envoy.filters.http.router",
        configType: { case: "typedConfig", value: anyPack(RouterSchema, create(RouterSchema)) },
      },
    ],
  });
  const filter = {
    name: "envoy.filters.network.http_connection_manager",
    configType: { case: "typedConfig" as const, value: anyPack(HttpConnectionManagerSchema, manager) },
  };
  return create(ListenerSchema, {
    name: `${prefix}routes/${routes.name}`,
    address: {
      address: {
        case: "socketAddress",
        value: { address: "127.0.0.1", portSpecifier: { case: "portValue", value: 0 } },
      },
    },
    filterChains: [{ filters: [filter] }],
  });
}

/** Endpoints are checked as those of a cluster. */
function endpointCluster(bytes: Uint8Array, prefix: string): Cluster {
  const loadAssignment = fromBinary(ClusterLoadAssignmentSchema, bytes);
  return create(ClusterSchema, {
    name: `${prefix}endpoints/${loadAssignment.clusterName}`,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    loadAssignment,
  });
}

/** The control plane and the agent, as the bootstrap of a sidecar names them. */
function grpcCluster(name: string): Cluster {
  return create(ClusterSchema, {
    name,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName: name,
      endpoints: [
        {
          lbEndpoints: [
            {
              hostIdentifier: {
                case: "endpoint",
                value: { address: { address: { case: "pipe", value: { path: "/nowhere" } } } },
              },
            },
          ],
        },
      ],
    },
    http2ProtocolOptions: {},
  });
}

/** Its output goes to a file: access logs open /dev/stdout, which a pipe of Node is no file for. */
async function run(args: readonly string[], log: string): Promise<number | null> {
  const file = await open(log, "w");
  try {
    return await new Promise((resolve, reject) => {
      const child = spawn(ENVOY, args, { stdio: ["ignore", file.fd, file.fd] });
      child.on("error", reject).on("close", resolve);
    });
  } finally {
    await file.close();
  }
}
