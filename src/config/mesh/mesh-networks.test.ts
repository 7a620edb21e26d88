import assert from "node:assert/strict";
import { test } from "node:test";
import { meshNetworksOf } from "./mesh-networks.ts";

const problemsOf = (network: object) =>
  meshNetworksOf({ networks: { n1: network } }).problems.map(({ field }) => field);

test("networks are read as they are written", () => {
  const n1 = {
    endpoints: [{ fromRegistry: "Kubernetes" }, { fromCidr: "10.0.0.0/8" }],
    gateways: [
      { address: "1.2.3.4", port: 15443, locality: "eu" },
      { registryServiceName: "gw.istio-system.svc.cluster.local", port: 443 },
      { address: "gw.example.com", port: 443 },
    ],
  };
  assert.deepEqual(meshNetworksOf({ networks: { n1 } }), { value: { n1 }, problems: [] });
  for (const none of [undefined, null, {}, { networks: {} }]) assert.deepEqual(meshNetworksOf(none).value, {});
});

test("what is wrong with a network is said with its place", () => {
  assert.deepEqual(problemsOf({ endpoints: [{ fromCidr: "10.0.0.0/99" }] }), ["networks.n1.endpoints[0].fromCidr"]);
  assert.deepEqual(problemsOf({ endpoints: [{ fromRegistry: "-x" }] }), ["networks.n1.endpoints[0].fromRegistry"]);
  assert.deepEqual(problemsOf({ gateways: [{ address: "1.2.3.4" }] }), ["networks.n1.gateways[0].port"]);
  assert.deepEqual(problemsOf({ gateways: [{ address: "a_b", port: 1 }] }), ["networks.n1.gateways[0].address"]);
  assert.deepEqual(problemsOf({ gateways: [{ registryServiceName: "a b", port: 1 }] }), [
    "networks.n1.gateways[0].registryServiceName",
  ]);
  assert.equal(problemsOf({ gateways: [{ address: "1.2.3.4", registryServiceName: "a", port: 1 }] }).length, 1);
  assert.equal(meshNetworksOf({ networks: [] }).value, undefined);
  assert.deepEqual(
    meshNetworksOf({ network: {} }).problems.map(({ severity }) => severity),
    ["warning"],
  );
});
