import assert from "node:assert/strict";
import { test } from "node:test";
import { Slices } from "#lib/async/slices.ts";
import { atOnce } from "#lib/async/steps.ts";
import type { Proxy as MeshProxy } from "#model/proxy.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "#protocol/type-urls.ts";
import { recipe } from "#translate/recipe.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { meshOf, proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import { rehearse } from "./rehearsal.ts";
import { translatedParts } from "./translated-parts.ts";

const slices = () => new Slices(() => performance.now(), 10);
const entry = (name: string, namespace: string) => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  hosts: [${name}.example.com]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 10.2.0.1}]
`;

test("rehearse() builds what a sidecar of the largest namespace would get, endpoints too, and not without end", async () => {
  const built = new Map<string, number>();
  const proxies: MeshProxy[] = [];
  const build = ({ typeUrl }: { typeUrl: string }) => {
    built.set(typeUrl, (built.get(typeUrl) ?? 0) + 1);
    return new Uint8Array();
  };
  const recipeOf = (typeUrl: string, name: string) => recipe({ name, input: { typeUrl }, build });
  const clusters = Array.from({ length: 2_000 }, (_, index) => recipeOf(CLUSTER_TYPE, `c${index}`));
  const snapshot = meshOf([entry("a", "few"), entry("b", "many"), entry("c", "many")].join("---"));
  await rehearse(
    snapshot,
    (_, proxy) => {
      proxies.push(proxy);
      return {
        types: new Map([[CLUSTER_TYPE, [{ key: "all", plan: () => atOnce(new Map([[CLUSTER_TYPE, clusters]])) }]]]),
        asked: new Map([[ENDPOINT_TYPE, { key: "e", plan: (name: string) => recipeOf(ENDPOINT_TYPE, name) }]]),
        omittedListeners: new Set<string>(),
      };
    },
    slices(),
  );
  assert.deepEqual(
    proxies.map(({ namespace, type }) => [namespace, type]),
    [["many", "sidecar"]],
  );
  const [builtClusters = 0, builtEndpoints] = [built.get(CLUSTER_TYPE), built.get(ENDPOINT_TYPE)];
  assert.ok(builtClusters > 0 && builtClusters < 2_000);
  assert.equal(builtEndpoints, builtClusters);
});

test("rehearse() takes an empty mesh", () => rehearse(meshOf(""), translatedParts, slices()));

test("a rehearsal that fails keeps nobody from what can be built", async () => {
  let broken = true;
  const onPlan = () => {
    if (broken) throw new Error("a bug");
  };
  await using ads = await startAds({ all: { [CLUSTER_TYPE]: { a: "1" } } }, { onPlan });
  await ads.server.rehearse();
  broken = false;
  assert.deepEqual(ads.server.held, { parts: 0, resources: 0 });
  using client = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  client.request(CLUSTER_TYPE);
  assert.deepEqual(
    (await client.take(CLUSTER_TYPE)).resources.map(({ name }) => name),
    ["a"],
  );
});
