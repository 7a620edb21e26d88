/** Callers that ask and do not read: what waits for them is limited, and takes nothing from others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { status } from "@grpc/grpc-js";
import { FramedMessage, joined } from "#lib/grpc/messages.ts";
import type { Caller } from "#model/ports.ts";
import { EMPTY_REQUEST, formatDeltaRequest } from "#protocol/messages/delta-request.ts";
import { CLUSTER_TYPE } from "#protocol/messages/type-urls.ts";
import { type AdsFixtureOptions, startAds } from "../../test/support/ads-fixture.ts";
import { proxyOf } from "../../test/support/mesh.ts";
import { UnreadCall } from "../../test/support/unread-call.ts";
import { nodeOf, XdsClient } from "../../test/support/xds-client.ts";
import { DIALECTS } from "./stream/dialect.ts";

const DEBUG = "istio.io/debug";
const MEGABYTE = 1_048_576;
const CALLER: Caller = {
  identity: "spiffe://cluster.local/ns/default/sa/default",
  namespace: "default",
  serviceAccount: "default",
  provedBy: "jwt",
};
const MESH = { all: { [CLUSTER_TYPE]: { a: "1" } } };
const question = Buffer.from(formatDeltaRequest({ ...EMPTY_REQUEST, typeUrl: DEBUG, subscribe: ["config_dump"] }));
const framed = joined(new FramedMessage(question).framed);
const PATH = DIALECTS[0]?.path ?? "";

/** Answers of a megabyte, which are counted. */
function largePage() {
  const made = { count: 0 };
  const debug = () => {
    made.count++;
    return { body: "x".repeat(MEGABYTE) };
  };
  return { made, debug };
}

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
};

test("debug pages for callers that do not read are not made, and pushes go on beside them", async () => {
  const { made, debug } = largePage();
  const limits = { bufferedBytes: 4 * MEGABYTE };
  await using ads = await startAds(MESH, { debug, authenticate: async () => CALLER, limits });
  using calls = new DisposableStack();
  for (let i = 0; i < 20; i++) calls.use(new UnreadCall(ads.address, PATH, question));
  while (made.count < 1) await turns(1);
  using proxy = new XdsClient(ads.address, { node: nodeOf(proxyOf()) });
  proxy.request(CLUSTER_TYPE);
  await proxy.take(CLUSTER_TYPE);
  // A quarter of the limit is for debug pages: the first one is more than that.
  assert.ok(made.count <= 2, `${made.count} pages of 1 MB were made for callers that read none`);
});

test("a call that asks again and again without reading is ended", async () => {
  const { made, debug } = largePage();
  await using ads = await startAds(MESH, { debug, authenticate: async () => CALLER });
  using call = new UnreadCall(ads.address, PATH, question);
  const ended = new Promise<unknown>((resolve) =>
    call.stream.on("trailers", (trailers) => resolve(trailers["grpc-status"])),
  );
  call.stream.write(Buffer.concat(Array.from({ length: 1_000 }, () => framed)));
  call.stream.resume();
  assert.equal(Number(await ended), status.RESOURCE_EXHAUSTED);
  assert.ok(made.count < 40, `${made.count} pages were made`);
});

test("a caller that reads no debug page is cut off in time, and gives the room back", async () => {
  const { made, debug } = largePage();
  const limits = { bufferedBytes: MEGABYTE, sendMs: 50 };
  await using ads = await startAds(MESH, { debug, authenticate: async () => CALLER, limits });
  using _stuck = new UnreadCall(ads.address, PATH, question);
  while (made.count < 1) await turns(1);
  using client = new XdsClient(ads.address);
  client.request(DEBUG, { subscribe: ["config_dump"] });
  assert.equal((await client.next(DEBUG)).resources[0]?.value.length, MEGABYTE);
});

test("slow readers that prove no identity do not keep proxies that do from their pushes", async () => {
  const big = { all: { [CLUSTER_TYPE]: { a: "x".repeat(2 * MEGABYTE) } } };
  const options: AdsFixtureOptions = {
    authenticate: async ({ headers }) => (headers.authorization === undefined ? undefined : CALLER),
    limits: { bufferedBytes: MEGABYTE },
  };
  await using ads = await startAds(big, options);
  const node = nodeOf(proxyOf({ serviceAccount: "" }));
  const request = Buffer.from(formatDeltaRequest({ ...EMPTY_REQUEST, node, typeUrl: CLUSTER_TYPE }));
  using _stuck = new UnreadCall(ads.address, PATH, request);
  while (ads.builds < 1) await turns(1);
  using proxy = new XdsClient(ads.address, { node, headers: { authorization: "proof" } });
  proxy.request(CLUSTER_TYPE);
  assert.equal((await proxy.take(CLUSTER_TYPE)).resources.length, 1);
});

test("a caller that has no more to ask gets its answers, and what it does not read counts until it is cut off", async () => {
  const { made, debug } = largePage();
  const limits = { bufferedBytes: MEGABYTE, sendMs: 200 };
  await using ads = await startAds(MESH, { debug, authenticate: async () => CALLER, limits });
  using call = new UnreadCall(ads.address, PATH, question);
  call.stream.end();
  while (made.count < 1) await turns(1);
  await turns(20);
  using other = new UnreadCall(ads.address, PATH, question);
  await turns(20);
  assert.equal(made.count, 1, "the answer for the first one was not counted any more");
  while (made.count < 2) await turns(1);
  let length = 0;
  other.stream.on("data", (chunk: Buffer) => {
    length += chunk.length;
  });
  other.stream.end();
  const status = new Promise<unknown>((resolve) => other.stream.on("trailers", resolve));
  assert.equal(Object(await status)["grpc-status"], "0");
  assert.ok(length > MEGABYTE);
});

test("a proxy that has no more to ask gets the response that is on its way", async () => {
  const big = { all: { [CLUSTER_TYPE]: { a: "x".repeat(4 * MEGABYTE) } } };
  await using ads = await startAds(big);
  const node = nodeOf(proxyOf());
  const request = Buffer.from(formatDeltaRequest({ ...EMPTY_REQUEST, node, typeUrl: CLUSTER_TYPE }));
  using call = new UnreadCall(ads.address, PATH, request);
  while (ads.builds < 1) await turns(1);
  await turns(5);
  call.stream.end();
  let length = 0;
  call.stream.on("data", (chunk: Buffer) => {
    length += chunk.length;
  });
  await new Promise((resolve) => call.stream.on("end", resolve));
  assert.ok(length > 4 * MEGABYTE, `${length} bytes`);
});
