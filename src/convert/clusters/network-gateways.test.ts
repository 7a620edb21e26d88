import assert from "node:assert/strict";
import { test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import type { MeshNetworks } from "#config/mesh/mesh-networks.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import { objectsOf } from "../../../test/support/mesh.ts";
import { buildSnapshot } from "../snapshot.ts";
import { networkFinder } from "../workloads/networks.ts";

function gateways(networks: MeshNetworks, ...services: object[]): readonly string[] {
  const yaml = services.map((service) => JSON.stringify(service)).join("\n---\n");
  const mesh = { ...DEFAULT_MESH_CONFIG, networks };
  const { networkGateways } = buildSnapshot({ objects: objectsOf(yaml), mesh, features: DEFAULT_FEATURES });
  return networkGateways.map(({ network, clusterId, address, port }) => `${network}/${clusterId}=${address}:${port}`);
}

function gateway(labels: object, more: object = {}): object {
  const spec = {
    externalIPs: ["9.9.9.9"],
    ports: [
      { name: "tls", port: 15443 },
      { name: "https", port: 443 },
    ],
    ...more,
  };
  return { apiVersion: "v1", kind: "Service", metadata: { name: "gw", labels }, spec };
}

test("gateways are those that networks name by address", () => {
  const networks = {
    n2: {
      gateways: [
        { address: "2.2.2.2", port: 2 },
        { address: "gw.example.com", port: 3 },
      ],
    },
    n1: {
      gateways: [
        { address: "1.1.1.1", port: 1 },
        { address: "1.1.1.1", port: 1 },
      ],
    },
  };
  assert.deepEqual(gateways(networks), ["n1/=1.1.1.1:1", "n2/=2.2.2.2:2"]);
});

test("a service of a network's cluster is its gateway", () => {
  const name = "gw.default.svc.cluster.local";
  const networks = (fromRegistry: string) => ({
    n1: { endpoints: [{ fromRegistry }], gateways: [{ registryServiceName: name, port: 443 }] },
  });
  assert.deepEqual(gateways(networks("Kubernetes"), gateway({})), ["n1/Kubernetes=9.9.9.9:443"]);
  assert.deepEqual(gateways(networks("other"), gateway({})), []);
  assert.deepEqual(gateways(networks("Kubernetes"), gateway({}, { externalIPs: [] })), []);
});

test("a service with the label of a network is its gateway, on the port it serves", () => {
  const label = { "topology.istio.io/network": "n1" };
  const on = (port: string) => gateways({}, gateway({ ...label, "networking.istio.io/gatewayPort": port }));
  assert.deepEqual(gateways({}, gateway(label)), ["n1/Kubernetes=9.9.9.9:15443"]);
  assert.deepEqual(on("443"), ["n1/Kubernetes=9.9.9.9:443"]);
  assert.deepEqual(on("odd"), ["n1/Kubernetes=9.9.9.9:15443"]);
  assert.deepEqual(on("444"), []);
});

test("a workload is in the network of its label, its cluster or its address", () => {
  const networks = {
    cluster: { endpoints: [{ fromRegistry: "c1" }] },
    narrow: { endpoints: [{ fromCidr: "10.1.0.0/16" }] },
    wide: { endpoints: [{ fromCidr: "10.0.0.0/8" }, { fromCidr: "fd00::/8" }] },
  };
  const labels = { "topology.istio.io/network": "own" };
  assert.equal(networkFinder("system", networks, "c1")("10.1.0.1", labels), "own");
  assert.equal(networkFinder("system", networks, "c1")("10.1.0.1", {}), "system");
  assert.equal(networkFinder("", networks, "c1")("10.1.0.1", {}), "cluster");
  const byAddress = (address: string) => networkFinder("", networks, "c2")(address, {});
  assert.deepEqual(["10.1.0.1", "10.9.0.1", "fd00::1", "11.0.0.1", "name"].map(byAddress), [
    "wide",
    "wide",
    "wide",
    "",
    "",
  ]);
});
