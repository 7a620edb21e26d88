/** Whatever stands in one file, the others are pushed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import { TestControlPlane } from "../../test/support/control-plane.ts";
import { eventually } from "../../test/support/fake-control-plane.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";

function serviceEntry(name: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: default}
spec:
  hosts: [${name}.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.2.0.1}]
`;
}

function virtualService(name: string, spec: object): string {
  const metadata = { name, namespace: "default" };
  return JSON.stringify({ apiVersion: "networking.istio.io/v1", kind: "VirtualService", metadata, spec });
}

const DESTINATION = [{ destination: { host: "good.example.com" } }];
const LARGE = virtualService("large", {
  hosts: ["good.example.com"],
  http: Array.from({ length: 30_000 }, (_, i) => ({
    match: [{ uri: { exact: `/${"x".repeat(100)}/${i}` } }],
    route: DESTINATION,
  })),
});
const CIRCLE = ["a", "b"].map((name) =>
  virtualService(name, { http: [{ delegate: { name: name === "a" ? "b" : "a" } }] }),
);

/** Each with what is said of it, if something is. */
const BAD: readonly (readonly [name: string, content: string | Buffer, said?: RegExp])[] = [
  ["invalid UTF-8", Buffer.from([0x6b, 0x69, 0x6e, 0x64, 0x3a, 0x20, 0xff, 0xfe, 0xc0]), /is not a text file/],
  ["nesting of 100,000 levels", `spec: ${"[".repeat(100_000)}`, /depth|nest|not YAML/i],
  [
    "an alias bomb",
    `a: &a [x,x]\nb: &b [*a,*a]\nc: &c [${"*b,".repeat(5000)}*b]\nd: [${"*c,".repeat(5000)}*c]`,
    /alias/i,
  ],
  [
    "keys of prototypes",
    '{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"p","labels":{"__proto__":"x"}},"spec":{"hosts":["a"],"__proto__":{"x":1},"constructor":1}}',
    /__proto__/,
  ],
  ["delegates in a circle", CIRCLE.join("\n---\n")],
  [
    "a regular expression that is none",
    virtualService("regex", {
      hosts: ["a.example.com"],
      http: [{ match: [{ uri: { regex: "(((" } }], route: DESTINATION }],
    }),
    /regex/,
  ],
  ["no object at all", "42", /VirtualService|object|kind/],
  ["an object of 5 MB", LARGE],
];

test("a bad file costs nobody else his push", async () => {
  assert.ok(LARGE.length > 4_500_000);
  await using controlPlane = new TestControlPlane({ files: { "good.yaml": serviceEntry("good") } });
  await controlPlane.ready();
  const node = nodeOf(proxyOf({ ip: "10.1.0.1" }));
  using client = new XdsClient(await controlPlane.address("gRPC discovery service"), { node });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  for (const [i, [name, content, said]] of BAD.entries()) {
    const lines = controlPlane.lines.length;
    controlPlane.write(`bad-${i}.yaml`, content);
    controlPlane.write(`next-${i}.yaml`, serviceEntry(`next-${i}`));
    const wanted = `outbound|80||next-${i}.example.com`;
    for (let found = false; !found; ) {
      const { resources } = await client.take(CLUSTER_TYPE);
      found = resources.some((resource) => resource.name === wanted);
    }
    if (said === undefined) continue;
    // A file that breaks is believed a moment later: it may be just being written.
    await eventually(
      () => `a word about ${name}:\n${controlPlane.lines.slice(lines).join("")}`,
      () => controlPlane.lines.slice(lines).some((line) => line.includes(`bad-${i}.yaml`) && said.test(line)),
    );
  }
  assert.equal(Object.getOwnPropertyNames(Object.prototype).includes("x"), false);
  client.request(LISTENER_TYPE);
  client.request(ENDPOINT_TYPE, { subscribe: ["outbound|80||good.example.com"] });
  client.request(ROUTE_TYPE, { subscribe: ["80"] });
  for (const typeUrl of [ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE]) {
    assert.ok((await client.take(typeUrl)).resources.length > 0, typeUrl);
  }
});
