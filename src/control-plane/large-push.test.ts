/** Thousands of new hosts at once: no proxy hears of a name before it knows the way there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
} from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

const OBJECTS = 2_000;
const PROXIES = 17;

function serviceEntry(i: number): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: host-${i}, namespace: default}
spec:
  hosts: [host-${i}.example.com]
  addresses: [10.${100 + (i >> 8)}.${i & 255}.1]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.2.0.1}]
`;
}

/** Acknowledges everything and asks for the endpoints of new clusters, as Envoy does, until it can resolve the last host. */
async function followed(client: XdsClient, host: string): Promise<readonly string[]> {
  const order: string[] = [];
  for (;;) {
    const response = await client.next();
    client.acknowledge(response);
    if (response.typeUrl === CLUSTER_TYPE) {
      client.request(ENDPOINT_TYPE, { subscribe: response.resources.map(({ name }) => name) });
    }
    const has = response.resources.some(({ name, value }) => name.includes(host) || Buffer.from(value).includes(host));
    if (has) order.push(response.typeUrl);
    if (has && response.typeUrl === NAME_TABLE_TYPE) return order;
  }
}

test(`${OBJECTS} new hosts reach ${PROXIES} proxies, each name after the way to it`, async () => {
  await using controlPlane = new TestControlPlane({ files: { "first.yaml": serviceEntry(OBJECTS) } });
  await controlPlane.ready();
  const address = await controlPlane.address("gRPC discovery service");
  using clients = new DisposableStack();
  const proxies = Array.from({ length: PROXIES }, (_, i) => {
    const node = nodeOf(proxyOf({ ip: `10.1.0.${i + 1}`, name: `app-${i}` }));
    return clients.use(new XdsClient(address, { node, patienceMs: 60_000 }));
  });
  const known = proxies.map((client) => {
    client.request(CLUSTER_TYPE);
    client.request(LISTENER_TYPE);
    client.request(ROUTE_TYPE, { subscribe: ["80"] });
    client.request(NAME_TABLE_TYPE);
    return followed(client, `host-${OBJECTS}.example.com`);
  });
  await Promise.all(known);
  const all = proxies.map((client) => followed(client, "host-7.example.com"));
  controlPlane.write("more.yaml", Array.from({ length: OBJECTS }, (_, i) => serviceEntry(i)).join("---\n"));
  for (const order of await Promise.all(all)) {
    const place = (typeUrl: string) => order.indexOf(typeUrl);
    assert.equal(place(NAME_TABLE_TYPE), order.length - 1);
    assert.ok(place(CLUSTER_TYPE) >= 0 && place(CLUSTER_TYPE) < place(ROUTE_TYPE), order.join());
    assert.ok(place(ENDPOINT_TYPE) >= 0 && place(ENDPOINT_TYPE) < place(NAME_TABLE_TYPE), order.join());
  }
});
