import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ingress } from "#config/kinds/ingress/schema.ts";
import type { Service } from "#config/kinds/service/schema.ts";
import { DEFAULT_MESH_CONFIG } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { convertIngresses, isOurs } from "./ingress.ts";

const MESH = { ...DEFAULT_MESH_CONFIG, ingressControllerMode: "DEFAULT" } as const;

function ingress(name: string, spec: Ingress, annotations: Record<string, string> = {}): ConfigObject<Ingress> {
  const metadata = { name, namespace: "shop", labels: {}, annotations, createdAt: 0 };
  return { kind: "Ingress", metadata, spec, origin: undefined };
}

function converted(spec: Ingress, services: readonly ConfigObject<Service>[] = []) {
  return convertIngresses({
    ingresses: [ingress("i", spec)],
    classes: [],
    services,
    mesh: MESH,
    domain: "cluster.local",
    gatewayNamespace: "istio-system",
  });
}

function pathTo(service: NonNullable<NonNullable<NonNullable<Ingress["defaultBackend"]>["service"]>>): Ingress {
  return { rules: [{ http: { paths: [{ path: "/a", pathType: "Prefix", backend: { service } }] } }] };
}

test("convertIngresses() finds the number of a named port, and leaves out a path that leads nowhere", () => {
  const web = {
    kind: "Service",
    metadata: ingress("web", {}).metadata,
    spec: { ports: [{ name: "http", port: 8080 }] },
  };
  const services = [{ ...web, origin: undefined } as ConfigObject<Service>];
  const ports = (spec: Ingress) =>
    converted(spec, services).virtualServices[0]?.spec.http?.map(({ route }) => route?.[0]?.destination.port?.number);
  assert.deepEqual(ports(pathTo({ name: "web", port: { name: "http" } })), [8080]);
  assert.deepEqual(ports(pathTo({ name: "web", port: { name: "admin" } })), []);
  assert.deepEqual(ports(pathTo({ name: "gone", port: { name: "http" } })), []);
});

test("convertIngresses() gives what it derives no age, so that it goes before what is written", () => {
  const { metadata, ...rest } = ingress("i", pathTo({ name: "web", port: { number: 80 } }));
  const ingresses = [{ ...rest, metadata: { ...metadata, createdAt: 1_000 } }];
  const { gateways, virtualServices } = convertIngresses({
    ingresses,
    classes: [],
    services: [],
    mesh: MESH,
    domain: "cluster.local",
    gatewayNamespace: "istio-system",
  });
  assert.deepEqual(
    [...gateways, ...virtualServices].map((object) => object.metadata.createdAt),
    [0, 0],
  );
});

test("convertIngresses() puts gateways where they are wanted", () => {
  const { gateways, virtualServices } = convertIngresses({
    ingresses: [ingress("i", pathTo({ name: "web", port: { number: 80 } }))],
    classes: [],
    services: [],
    mesh: MESH,
    domain: "cluster.local",
    gatewayNamespace: "edge",
  });
  assert.equal(gateways[0]?.metadata.namespace, "edge");
  assert.match(virtualServices[0]?.spec.gateways?.[0] ?? "", /^edge\//);
});

test("convertIngresses() takes any host where none is named, and no TLS without a secret", () => {
  const { gateways, virtualServices } = converted({
    ...pathTo({ name: "web", port: { number: 80 } }),
    tls: [{ hosts: ["a"] }],
  });
  assert.deepEqual(virtualServices[0]?.spec.hosts, ["*"]);
  assert.deepEqual(
    gateways[0]?.spec.servers?.map(({ port }) => port?.number),
    [80],
  );
});

for (const [annotation, controller, mode, wanted] of [
  ["istio", undefined, "STRICT", true],
  ["istio", undefined, "OFF", false],
  ["nginx", "istio.io/ingress-controller", "DEFAULT", false],
  [undefined, "istio.io/ingress-controller", "STRICT", true],
  [undefined, "other", "DEFAULT", false],
  [undefined, undefined, "DEFAULT", true],
  [undefined, undefined, "STRICT", false],
] as const) {
  test(`isOurs() is ${wanted} for annotation ${annotation}, controller ${controller}, mode ${mode}`, () => {
    const annotations: Record<string, string> =
      annotation === undefined ? {} : { "kubernetes.io/ingress.class": annotation };
    const named = controller === undefined ? undefined : { controller };
    assert.equal(isOurs(ingress("i", {}, annotations), named, { ...MESH, ingressControllerMode: mode }), wanted);
  });
}
