/** Proxies and events that misbehave: none of it costs another proxy its push. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER_TYPE, LISTENER_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import { PushJournal } from "./journal/push-journal.ts";
import { type Clock, SYSTEM_CLOCK } from "./timing/clock.ts";

const clusters = (version: string, count = 4) => ({
  all: { [CLUSTER_TYPE]: Object.fromEntries(Array.from({ length: count }, (_, i) => [`c${i}`, version])) },
});
const GOOD = nodeOf(proxyOf({ name: "good", ip: "10.0.0.2" }));
const BAD = nodeOf(proxyOf({ name: "bad" }));

for (const method of ["DeltaAggregatedResources", "StreamAggregatedResources"]) {
  test(`a proxy that rejects everything over ${method} is left alone in the end, and others get theirs`, async () => {
    const journal = new PushJournal();
    await using ads = await startAds(clusters("1"), { journal });
    using bad = new XdsClient(ads.address, { node: BAD, method });
    using good = new XdsClient(ads.address, { node: GOOD, method });
    for (const client of [bad, good]) client.request(CLUSTER_TYPE);
    const rejecting = (async () => {
      for (;;) bad.reject(await bad.next(CLUSTER_TYPE), "no");
    })().catch(() => undefined);
    await good.take(CLUSTER_TYPE);
    for (const version of ["2", "3", "4"]) {
      ads.set(clusters(version));
      const { resources } = await good.take(CLUSTER_TYPE);
      assert.equal(resources.length, 4);
    }
    // Halves, and halves of halves, for each of the four versions at most; the same bytes are never tried again.
    const tries = () => journal.pushes().filter(({ node }) => node.includes("bad")).length;
    let before = -1;
    while (before !== tries()) {
      before = tries();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.ok(before <= 4 * 8, `${before} responses to a proxy that rejects them all`);
    bad[Symbol.dispose]();
    await rejecting;
  });
}

test("a storm of events becomes few pushes, and the last state arrives", async () => {
  const journal = new PushJournal();
  await using ads = await startAds(clusters("0"), { journal });
  using client = new XdsClient(ads.address, { node: GOOD });
  client.request(CLUSTER_TYPE);
  await client.take(CLUSTER_TYPE);
  for (let event = 1; event <= 2_000; event++) ads.set(clusters(`${event}`));
  let last = "";
  while (!last.includes("2000")) {
    const { resources } = await client.take(CLUSTER_TYPE);
    last = Buffer.from(resources[0]?.value ?? []).toString();
  }
  assert.ok(journal.pushes().length <= 10, `${journal.pushes().length} pushes for one storm`);
});

test("a clock that jumps ahead or back delays and loses nothing", async () => {
  let jump = 0;
  const clock: Clock = { now: () => SYSTEM_CLOCK.now() + jump, after: SYSTEM_CLOCK.after };
  await using ads = await startAds(clusters("1"), { clock });
  using client = new XdsClient(ads.address, { node: GOOD });
  client.request(CLUSTER_TYPE);
  client.request(LISTENER_TYPE);
  await client.take(CLUSTER_TYPE);
  await client.take(LISTENER_TYPE);
  for (const [version, ahead] of [
    ["2", 3_600_000],
    ["3", 30 * 86_400_000],
    ["4", 0],
    ["5", -30 * 86_400_000],
  ] as const) {
    jump = ahead;
    ads.set(clusters(version));
    assert.equal((await client.take(CLUSTER_TYPE)).resources.length, 4);
  }
});
