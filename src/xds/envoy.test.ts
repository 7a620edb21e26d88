/** A real Envoy on our stream: nothing stays warming, and no request fails while everything changes. */
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { Cluster_DiscoveryType, Cluster_LbPolicy, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { TypedExtensionConfigSchema } from "#gen/envoy/config/core/v3/extension_pb.ts";
import { ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { GrpcWebSchema } from "#gen/envoy/extensions/filters/http/grpc_web/v3/grpc_web_pb.ts";
import { RouterSchema } from "#gen/envoy/extensions/filters/http/router/v3/router_pb.ts";
import {
  HttpConnectionManagerSchema,
  HttpFilterSchema,
} from "#gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
} from "#protocol/messages/type-urls.ts";
import { AdsEnvoy, type ApiType, get, NO_ENVOY } from "../../test/support/ads-envoy.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import type { Labels, XdsMetric } from "./metrics/metrics.ts";

const ADS = {
  configSourceSpecifier: { case: "ads", value: {} },
  initialFetchTimeout: {},
  resourceApiVersion: 2,
} as const;

type ClusterFields = { readonly altStatName?: string; readonly lbPolicy?: Cluster_LbPolicy };

function cluster(name: string, fields: ClusterFields = {}): Uint8Array {
  return toBinary(
    ClusterSchema,
    create(ClusterSchema, {
      name,
      connectTimeout: { seconds: 1n },
      clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.EDS },
      edsClusterConfig: { edsConfig: ADS, serviceName: name },
      ...fields,
    }),
  );
}

function endpoints(clusterName: string, port: number): Uint8Array {
  const portSpecifier = { case: "portValue", value: port } as const;
  const address = { address: { case: "socketAddress", value: { address: "127.0.0.1", portSpecifier } } } as const;
  const lbEndpoints = [{ hostIdentifier: { case: "endpoint", value: { address } } } as const];
  return toBinary(
    ClusterLoadAssignmentSchema,
    create(ClusterLoadAssignmentSchema, { clusterName, endpoints: [{ lbEndpoints }] }),
  );
}

/** An extension that does nothing, by the name that a listener takes it by. */
const EXTENSION = toBinary(
  TypedExtensionConfigSchema,
  create(TypedExtensionConfigSchema, { name: "extra", typedConfig: anyPack(GrpcWebSchema, create(GrpcWebSchema)) }),
);
const BY_NAME = create(HttpFilterSchema, {
  name: "extra",
  configType: {
    case: "configDiscovery",
    value: { configSource: ADS, typeUrls: [`type.googleapis.com/${GrpcWebSchema.typeName}`] },
  },
});

function listener(name: string, socket: string, routeConfigName: string, { extended = false } = {}): Uint8Array {
  const router = create(HttpFilterSchema, {
    name: "router",
    configType: { case: "typedConfig", value: anyPack(RouterSchema, create(RouterSchema)) },
  });
  const manager = create(HttpConnectionManagerSchema, {
    statPrefix: name,
    httpFilters: extended ? [BY_NAME, router] : [router],
    routeSpecifier: { case: "rds", value: { configSource: ADS, routeConfigName } },
  });
  const typedConfig = { case: "typedConfig", value: anyPack(HttpConnectionManagerSchema, manager) } as const;
  return toBinary(
    ListenerSchema,
    create(ListenerSchema, {
      name,
      address: { address: { case: "pipe", value: { path: socket } } },
      filterChains: [{ filters: [{ name: "hcm", configType: typedConfig }] }],
    }),
  );
}

function route(name: string, clusterName: string): Uint8Array {
  const action = { case: "route", value: { clusterSpecifier: { case: "cluster", value: clusterName } } } as const;
  const match = { pathSpecifier: { case: "prefix", value: "/" } } as const;
  const virtualHosts = [{ name: "all", domains: ["*"], routes: [{ match, action }] }];
  return toBinary(RouteConfigurationSchema, create(RouteConfigurationSchema, { name, virtualHosts }));
}

/** One listener with one route to one cluster, which may carry a mark that changes it. */
const meshTo = (name: string, port: number, { socket = "", mark = "" }) => ({
  all: {
    [CLUSTER_TYPE]: { [name]: cluster(name, { altStatName: mark }) },
    [ENDPOINT_TYPE]: { [name]: endpoints(name, port) },
    [LISTENER_TYPE]: { in: listener("in", socket, `r-${name}`) },
    [ROUTE_TYPE]: { [`r-${name}`]: route(`r-${name}`, name) },
  },
});

async function upstream(): Promise<{ readonly port: number } & Disposable> {
  const server = http.createServer((_, response) => response.end("ok"));
  server.keepAliveTimeout = 0; // it must not end a connection at the moment at which Envoy uses it again
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** One connection that is kept for all requests. */
function keptConnection(socketPath: string): Disposable & { readonly status: (path: string) => Promise<number> } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const status = (path: string) =>
    new Promise<number>((resolve, reject) => {
      const request = http.get({ socketPath, path, agent }, (response) => {
        response.resume().on("end", () => resolve(response.statusCode ?? 0));
      });
      request.on("error", reject);
    });
  return { status, [Symbol.dispose]: () => agent.destroy() };
}

/** Calls without a pause until it is disposed of; gives everything that was not 200. */
function constantLoad(socket: string): AsyncDisposable & { readonly failures: string[]; readonly calls: number } {
  const failures: string[] = [];
  let calls = 0;
  let stopped = false;
  const loop = async () => {
    while (!stopped) {
      calls++;
      const answer = await get(socket, "/").catch((error: Error) => ({ status: 0, body: error.message }));
      if (answer.status !== 200) failures.push(`${answer.status} ${answer.body}`);
    }
  };
  const running = loop();
  return {
    failures,
    get calls() {
      return calls;
    },
    [Symbol.asyncDispose]: async () => {
      stopped = true;
      await running;
    },
  };
}

const KINDS: readonly ApiType[] = ["DELTA_GRPC", "GRPC"];

for (const kind of KINDS) {
  test(`clusters, listeners and routes are replaced under constant load without a failed request (${kind})`, {
    skip: NO_ENVOY,
  }, async () => {
    using app = await upstream();
    await using ads = await startAds({});
    await using envoy = await AdsEnvoy.start(ads.address, { apiType: kind });
    const socket = envoy.socket("in");
    ads.set(meshTo("first", app.port, { socket }));
    await envoy.until(
      "the listener answers",
      async () => (await get(socket, "/").catch(() => undefined))?.status === 200,
    );
    await using load = constantLoad(socket);
    for (let round = 0; round < 5; round++) {
      for (const name of ["second", "first"]) {
        ads.set(meshTo(name, app.port, { socket, mark: `${round}` }));
        const other = name === "first" ? "second" : "first";
        await envoy.until(`${other} is gone`, async () => {
          const has = (await get(envoy.socket("admin"), "/clusters")).body;
          return has.includes(`${name}::127.0.0.1`) && !has.includes(`${other}::`);
        });
        await envoy.warmed();
      }
    }
    assert.deepEqual(load.failures, []);
    assert.ok(load.calls > 50, `only ${load.calls} calls`);
  });
}

test("a cluster does not stay warming when the stream is cut between it and its endpoints", {
  skip: NO_ENVOY,
}, async () => {
  using app = await upstream();
  let onPush = (_type: string) => undefined as undefined;
  const count = (name: XdsMetric, labels: Labels = {}) => {
    if (name === "pilot_xds_pushes") onPush(labels.type ?? "");
  };
  await using ads = await startAds({}, { metrics: { count, set: () => undefined, observe: () => undefined } });
  await using envoy = await AdsEnvoy.start(ads.address);
  const socket = envoy.socket("in");
  ads.set(meshTo("first", app.port, { socket }));
  await envoy.until(
    "the listener answers",
    async () => (await get(socket, "/").catch(() => undefined))?.status === 200,
  );
  await envoy.warmed();
  const endpointsSent = new Promise<void>((resolve) => {
    onPush = (type) => {
      if (type === "eds") resolve();
    };
  });
  envoy.relay.holdAfter(CLUSTER_TYPE);
  ads.set(meshTo("first", app.port, { socket, mark: "changed" }));
  await endpointsSent;
  await envoy.until(
    "the changed cluster is warming",
    async () => (await envoy.stat("cluster_manager.warming_clusters")) === 1,
  );
  envoy.relay.cut();
  await envoy.warmed();
  assert.equal((await get(socket, "/")).status, 200);
});

for (const kind of KINDS) {
  test(`what Envoy rejects is found by what it says, and the rest arrives (${kind})`, { skip: NO_ENVOY }, async () => {
    using app = await upstream();
    await using ads = await startAds({});
    await using envoy = await AdsEnvoy.start(ads.address, { apiType: kind });
    const socket = envoy.socket("in");
    const good = meshTo("good", app.port, { socket }).all;
    const bad = cluster("bad", { lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED }); // which EDS clusters cannot have
    ads.set({
      all: {
        ...good,
        [CLUSTER_TYPE]: { bad, ...good[CLUSTER_TYPE] },
        [LISTENER_TYPE]: { worse: Buffer.from("\n\u0005worse"), ...good[LISTENER_TYPE] },
      },
    });
    await envoy.until(
      "the listener answers",
      async () => (await get(socket, "/").catch(() => undefined))?.status === 200,
    );
    await envoy.warmed();
    const [proxy] = ads.server.connections();
    const rejected = [CLUSTER_TYPE, LISTENER_TYPE].map((typeUrl) => proxy?.types.get(typeUrl)?.rejected);
    assert.ok(
      rejected.every((nonce) => nonce !== ""),
      "Envoy took what it should not",
    );
    const clusters = (await get(envoy.socket("admin"), "/clusters")).body;
    assert.ok(clusters.includes("good::") && !clusters.includes("bad::"));
  });
}

test("a request on an old connection passes when a filter that was taken by name is gone", {
  skip: NO_ENVOY,
}, async () => {
  using app = await upstream();
  await using ads = await startAds({});
  await using envoy = await AdsEnvoy.start(ads.address);
  const socket = envoy.socket("in");
  const { all } = meshTo("first", app.port, { socket });
  const extended = { ...all, [LISTENER_TYPE]: { in: listener("in", socket, "r-first", { extended: true }) } };
  ads.set({ all: { ...extended, [EXTENSION_TYPE]: { extra: EXTENSION } } });
  await envoy.until(
    "the listener answers",
    async () => (await get(socket, "/").catch(() => undefined))?.status === 200,
  );
  using connection = keptConnection(socket);
  assert.equal(await connection.status("/"), 200);
  ads.set({ all: { ...all, [EXTENSION_TYPE]: {} } });
  await envoy.until("the new listener took over", async () => {
    const modified = await envoy.stat("listener_manager.listener_modified");
    return modified === 1 && ads.server.hasSentAll;
  });
  await envoy.warmed();
  assert.equal(await connection.status("/"), 200);
});
