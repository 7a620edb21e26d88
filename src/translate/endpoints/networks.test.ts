import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "#model/service/endpoint.ts";
import { acrossNetworks } from "./networks.ts";

const PORT = { name: "http", port: 80, protocol: "HTTP" } as const;

function endpoint(address: string, network: string, more: Partial<Endpoint> = {}): Endpoint {
  const nobody = {
    namespace: "default",
    workloadName: "w",
    serviceAccount: "sa",
    locality: "",
    health: "healthy",
  } as const;
  return {
    ...nobody,
    address,
    network,
    ports: { http: 80 },
    labels: {},
    tlsMode: "istio",
    clusterId: "c1",
    weight: 0,
    ...more,
  };
}

function gateway(network: string, address: string, clusterId = "") {
  return { network, clusterId, address, port: 15443 };
}

function shown(endpoints: readonly Endpoint[], gateways: readonly ReturnType<typeof gateway>[], network = "n1") {
  const acceptsMtls = ({ tlsMode }: Endpoint) => tlsMode === "istio";
  const reached = acrossNetworks(endpoints, { network, networkGateways: gateways, port: PORT, acceptsMtls });
  return reached.map(({ address, ports, weight }) => `${address}:${ports.http}=${weight}`);
}

test("in a mesh of one network endpoints stay as they are", () => {
  const all = [endpoint("10.1.0.1", "n1"), endpoint("10.2.0.1", "n2")];
  assert.equal(acrossNetworks(all, { network: "n1", networkGateways: [], port: PORT, acceptsMtls: () => true }), all);
});

test("endpoints of another network are reached through its gateways, with their weight", () => {
  const all = [endpoint("10.1.0.1", "n1"), endpoint("10.2.0.1", "n2", { weight: 3 }), endpoint("10.2.0.2", "n2")];
  const ways = [gateway("n2", "2.2.2.1"), gateway("n2", "2.2.2.2"), gateway("n3", "3.3.3.1")];
  assert.deepEqual(shown(all, ways), ["10.1.0.1:80=2", "2.2.2.1:15443=4", "2.2.2.2:15443=4"]);
  assert.deepEqual(shown(all, ways, ""), ["10.1.0.1:80=2", "10.2.0.1:80=6", "10.2.0.2:80=2"]);
});

test("without mutual TLS an endpoint of another network is not reached", () => {
  const all = [
    endpoint("10.2.0.1", "n2", { tlsMode: "disabled" }),
    endpoint("10.4.0.1", "n4", { tlsMode: "disabled" }),
  ];
  assert.deepEqual(shown(all, [gateway("n2", "2.2.2.1")]), ["10.4.0.1:80=1"]);
});

test("gateways of the endpoint's own cluster are preferred", () => {
  const ways = [gateway("n2", "2.2.2.1", "c1"), gateway("n2", "2.2.2.2", "c2")];
  assert.deepEqual(shown([endpoint("10.2.0.1", "n2")], ways), ["2.2.2.1:15443=2"]);
  assert.deepEqual(shown([endpoint("10.2.0.1", "n2", { clusterId: "c3" })], ways), [
    "2.2.2.1:15443=1",
    "2.2.2.2:15443=1",
  ]);
});

test("an endpoint without address is reached only where there is a gateway", () => {
  assert.deepEqual(shown([endpoint("", "n2"), endpoint("", "n4"), endpoint("", "n1")], [gateway("n2", "2.2.2.1")]), [
    "2.2.2.1:15443=1",
  ]);
});
