import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertSettled } from "../../support/envoy-settled.ts";
import { meshUnavailable, type RunningMesh, scratchFolder, upMesh } from "../../support/mesh-run.ts";

const PROXIES = [
  "productpage-v1",
  "details-v1",
  "ratings-v1",
  "reviews-v1",
  "reviews-v2",
  "reviews-v3",
  "istio-ingressgateway",
];

describe("Bookinfo", { skip: meshUnavailable() }, () => {
  let folder: Awaited<ReturnType<typeof scratchFolder>>;
  let mesh: RunningMesh;
  let address: string;

  before(async () => {
    folder = await scratchFolder("samples/bookinfo");
    mesh = await upMesh(folder.path);
    address = await mesh.address();
  });

  after(async () => {
    await mesh[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  /** The versions of reviews that a number of page views show. */
  async function reviews(views: number, user = ""): Promise<Set<string>> {
    const seen = new Set<string>();
    for (let i = 0; i < views; i++) {
      const answer = await fetch(`${address}/productpage${user === "" ? "" : `?u=${user}`}`);
      assert.equal(answer.status, 200);
      seen.add(/reviews-(v\d)/.exec(await answer.text())?.[1] ?? "none");
    }
    return seen;
  }

  async function apply(file: string): Promise<void> {
    await cp(join(folder.path, "networking", file), join(folder.path, "config", "route.yaml"));
  }

  test("the page is served through the gateway with details and reviews", async () => {
    const answer = await fetch(`${address}/productpage`);
    const html = await answer.text();
    assert.equal(answer.status, 200);
    assert.match(html, /The Comedy of Errors/);
    assert.match(html, /ISBN/);
    assert.equal((await fetch(`${address}/nowhere`)).status, 404);
    assert.deepEqual([...(await reviews(30))].sort(), ["v1", "v2", "v3"]);
  });

  test("all traffic goes to v1, and jason's to v2, as the sample routes say", async () => {
    await apply("virtual-service-all-v1.yaml");
    await until(async () => (await reviews(5)).isSubsetOf(new Set(["v1"])));
    assert.deepEqual(await reviews(20), new Set(["v1"]));
    await apply("virtual-service-reviews-test-v2.yaml");
    await until(async () => (await reviews(1, "jason")).has("v2"));
    assert.deepEqual(await reviews(10, "jason"), new Set(["v2"]));
    assert.deepEqual(await reviews(10), new Set(["v1"]));
  });

  test("no proxy rejected anything, and nothing warms", async () => {
    await assertSettled(mesh, PROXIES);
  });
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 15_000;
  while (!(await condition())) assert.ok(performance.now() < end, "the route has no effect");
}
