import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import { createLogger } from "#lib/log/log.ts";
import { type MemorySource, memorySource } from "../memory.ts";
import { type GatewayAddressSource, gatewayAddressSource } from "./gateway-address-source.ts";

const BALANCER = `
apiVersion: v1
kind: Service
metadata: {name: gw, labels: {topology.istio.io/network: n2}}
spec: {type: LoadBalancer, ports: [{name: tls, port: 15443}]}
status: {loadBalancer: {ingress: [{hostname: lb.example}]}}
`;
const meshWith = (...gateways: readonly { readonly address: string; readonly port: number }[]) => ({
  ...DEFAULT_MESH_CONFIG,
  networks: { n1: { gateways } },
});

describe("gatewayAddressSource()", () => {
  let source: MemorySource;
  let gateways: GatewayAddressSource;
  let addresses: Map<string, readonly string[]>;
  let holdsMs: number;
  let lines: string[];
  let stop: AbortController;
  let running: Promise<void>;

  beforeEach(() => {
    source = memorySource();
    addresses = new Map();
    holdsMs = 60_000;
    lines = [];
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  function run(): void {
    const resolve = async (name: string) => {
      const value = addresses.get(name);
      if (value === undefined) throw new Error("no name server");
      return { value, holdsMs };
    };
    const log = createLogger({ write: (line) => lines.push(line) });
    gateways = gatewayAddressSource({ taker: source, resolve, log, retry: { initialMs: 1, maxMs: 1 } });
    running = gateways.run(stop.signal);
  }

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  const known = () =>
    source.current().networkGateways.map(({ network, address, port }) => `${network}=${address}:${port}`);

  test("names of networks and of load balancers lead to gateways at their addresses", async () => {
    addresses.set("gw.example", ["10.1.0.2", "2001:db8::1"]).set("lb.example", ["10.2.0.1"]);
    source.write({ "gw.yaml": BALANCER });
    source.setMesh(meshWith({ address: "gw.example", port: 443 }, { address: "10.1.0.1", port: 443 }));
    assert.deepEqual(known(), ["n1=10.1.0.1:443"]);
    run();
    await gateways.tried();
    assert.deepEqual(known(), ["n1=10.1.0.1:443", "n1=10.1.0.2:443", "n2=10.2.0.1:15443", "n1=2001:db8::1:443"]);
  });

  test("a name is looked up again when its time is over, and its last addresses stay while nobody answers", async () => {
    holdsMs = 1;
    addresses.set("gw.example", ["10.1.0.1"]);
    source.setMesh(meshWith({ address: "gw.example", port: 443 }));
    run();
    await until(() => known().join() === "n1=10.1.0.1:443");
    addresses.set("gw.example", ["10.1.0.9"]);
    await until(() => known().join() === "n1=10.1.0.9:443");
    addresses.delete("gw.example");
    await until(() => lines.some((line) => line.includes("those of before stay")));
    assert.deepEqual(known(), ["n1=10.1.0.9:443"]);
    addresses.set("gw.example", []);
    await until(() => known().length === 0);
  });

  test("a name that cannot be looked up is said, tried again, and costs the others nothing", async () => {
    addresses.set("good.example", ["10.1.0.1"]);
    source.setMesh(meshWith({ address: "bad.example", port: 443 }, { address: "good.example", port: 443 }));
    run();
    await gateways.tried();
    assert.deepEqual(known(), ["n1=10.1.0.1:443"]);
    assert.match(lines.join("\n"), /cannot be looked up: it is left out.*bad\.example.*no name server/);
    addresses.set("bad.example", ["10.1.0.2"]);
    await until(() => known().length === 2);
  });

  test("names that no gateway has any more are forgotten", async () => {
    addresses.set("gw.example", ["10.1.0.1"]);
    source.setMesh(meshWith({ address: "gw.example", port: 443 }));
    run();
    await until(() => known().length === 1);
    source.setMesh(DEFAULT_MESH_CONFIG);
    assert.deepEqual(known(), []);
    addresses.delete("gw.example");
    await new Promise((resolve) => setImmediate(resolve));
    source.setMesh(meshWith({ address: "gw.example", port: 443 }));
    await gateways.tried();
    assert.deepEqual(known(), []);
  });
});
