import assert from "node:assert/strict";
import { test } from "node:test";
import { create, createRegistry, fromJson, toJson } from "@bufbuild/protobuf";
import { file_google_protobuf_duration } from "@bufbuild/protobuf/wkt";
import { ClusterSchema, file_envoy_config_cluster_v3_cluster } from "#gen/envoy/config/cluster/v3/cluster_pb.ts";
import { file_envoy_config_core_v3_address } from "#gen/envoy/config/core/v3/address_pb.ts";

test("fileDesc() keeps the files that a file imports, and theirs", () => {
  const { dependencies } = file_envoy_config_cluster_v3_cluster;
  assert.ok(dependencies.includes(file_envoy_config_core_v3_address));
  assert.ok(dependencies.includes(file_google_protobuf_duration));
  assert.ok(file_envoy_config_core_v3_address.dependencies.length > 0);
});

test("fileDesc() joins fields to the types of other files as those files have them", () => {
  const address = ClusterSchema.field.upstreamBindConfig?.message?.field.sourceAddress?.message;
  assert.equal(address?.typeName, "envoy.config.core.v3.SocketAddress");
  assert.equal(address?.file, file_envoy_config_core_v3_address);
  const json = { name: "a", connectTimeout: "1.500s", upstreamBindConfig: { sourceAddress: { address: "10.0.0.1" } } };
  assert.deepEqual(toJson(ClusterSchema, fromJson(ClusterSchema, json)), json);
  assert.equal(createRegistry(ClusterSchema).getMessage("envoy.config.cluster.v3.Cluster"), ClusterSchema);
  assert.equal(create(ClusterSchema).$typeName, "envoy.config.cluster.v3.Cluster");
});
