import assert from "node:assert/strict";
import { test } from "node:test";
import { objectsOf } from "../../../test/support/mesh.ts";
import { readMesh } from "../mesh/read-mesh.ts";
import { gatewayHints } from "./gateway-hints.ts";

const MESH = `
apiVersion: mizzen.dev/v1alpha1
kind: Mesh
metadata: {name: shop}
spec:
  gateways:
  - {name: gw, labels: {istio: ingressgateway}, ports: [{name: http, port: 8080}], publish: ["0:8080"]}
  - {name: other, labels: {istio: other}, ports: [80]}
`;

function gateway(...numbers: readonly number[]): string {
  const servers = numbers.map(
    (number) => `{port: {number: ${number}, name: p${number}, protocol: HTTP}, hosts: ["*"]}`,
  );
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: in, namespace: default}
spec: {selector: {istio: ingressgateway}, servers: [${servers.join()}]}
---`;
}

const service = (targetPort: string | number) => `
apiVersion: v1
kind: Service
metadata: {name: gw, namespace: istio-system}
spec: {selector: {istio: ingressgateway}, ports: [{name: http, port: 80, targetPort: ${targetPort}}]}
`;

function hints(yaml: string): readonly string[] {
  const { mesh } = readMesh({ text: MESH, file: "/srv/mesh.yaml" });
  return gatewayHints(mesh?.members ?? assert.fail("no mesh"), objectsOf(yaml));
}

test("a server of a Gateway that no published port leads to is named", () => {
  assert.deepEqual(hints(gateway(8080, 80)), [
    'test.yaml:2: Gateway "in" opens port 80 of "gw", of which only 8080 is published: this machine does not lead to it; add "127.0.0.1:0:80" to its publish',
  ]);
});

test("ports are those that a Service of the gateway leads to", () => {
  for (const target of [8080, "http"]) assert.deepEqual(hints(gateway(80) + service(target)), [], String(target));
  assert.match(hints(gateway(80) + service(9090)).join(), /opens port 9090/);
});

test("a gateway that publishes nothing is not meant for this machine", () => {
  assert.deepEqual(
    hints(`${gateway(8080)}${gateway(80).replace("ingressgateway", "other").replace("in,", "two,")}`),
    [],
  );
});

test("a published gateway that no Gateway selects is named, unless something else may open its ports", () => {
  const alone = [
    'gateway "gw" is selected by no Gateway (labels istio=ingressgateway): nothing answers at the ports that it publishes; add a Gateway, or correct its selector',
  ];
  assert.deepEqual(hints(""), alone);
  assert.deepEqual(hints(gateway(8080).replace("ingressgateway", "elsewhere")), alone);
  const filter = "apiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: f}\nspec: {}\n";
  assert.deepEqual(hints(filter), []);
});
