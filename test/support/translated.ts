/** What a proxy gets, decoded, for tests that look at single fields. */
import assert from "node:assert/strict";
import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { type Cluster, ClusterSchema } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from "#gen/envoy/config/endpoint/v3/endpoint_pb.ts";
import { type Listener, ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { type RouteConfiguration, RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { type NameTable, NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { generate } from "../conformance/generate.ts";

export interface Translated {
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly listeners: ReadonlyMap<string, Listener>;
  readonly routes: ReadonlyMap<string, RouteConfiguration>;
  readonly names: NameTable;
  /** Fails the test when there is no such resource. */
  cluster(name: string): Cluster;
  listener(name: string): Listener;
  route(name: string): RouteConfiguration;
  endpoints(cluster: string): ClusterLoadAssignment;
}

export function translated(snapshot: Snapshot, proxy: MeshProxy): Translated {
  const generated = generate(snapshot, proxy);
  const clusters = decoded(ClusterSchema, generated.clusters);
  const listeners = decoded(ListenerSchema, generated.listeners);
  const routes = decoded(RouteConfigurationSchema, generated.routes);
  const [names = new Uint8Array()] = generated.nameTables.values();
  return {
    clusters,
    listeners,
    routes,
    names: fromBinary(NameTableSchema, names),
    cluster: (name) => found(clusters, name),
    listener: (name) => found(listeners, name),
    route: (name) => found(routes, name),
    endpoints: (cluster) => {
      const bytes = generated.endpointsOf(cluster);
      assert.ok(bytes, `no endpoints for ${cluster}`);
      return fromBinary(ClusterLoadAssignmentSchema, bytes);
    },
  };
}

/** The message inside an `Any` of a known type. */
export function unpacked<Desc extends DescMessage>(schema: Desc, any: Any | undefined): MessageShape<Desc> {
  assert.equal(any?.typeUrl, `type.googleapis.com/${schema.typeName}`);
  return fromBinary(schema, any.value);
}

function decoded<Desc extends DescMessage>(schema: Desc, resources: ReadonlyMap<string, Uint8Array>) {
  return new Map([...resources].map(([name, bytes]) => [name, fromBinary(schema, bytes)]));
}

function found<T>(resources: ReadonlyMap<string, T>, name: string): T {
  const resource = resources.get(name);
  assert.ok(resource, `no ${name} in ${[...resources.keys()]}`);
  return resource;
}
