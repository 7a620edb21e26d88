/** Clients of the SDS socket that ask for more than their share. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Client, type ClientDuplexStream, credentials } from "@grpc/grpc-js";
import { DiscoveryRequestSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { SILENT } from "#lib/log/log.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { RAW } from "../../../test/support/raw-messages.ts";
import { agentMetrics } from "../metrics.ts";
import { serveUnix } from "../unix-server.ts";
import { secretDiscoveryService } from "./service.ts";

const RESOURCE_EXHAUSTED = 8;
const INVALID_ARGUMENT = 3;
const SERVICE = "/envoy.service.secret.v3.SecretDiscoveryService";

async function setUp(t: TestContext) {
  const path = join(temporaryFolder(t), "socket");
  const stop = new AbortController();
  let watches = 0;
  const source = {
    owns: () => true,
    watch: () => {
      watches++;
      return () => void watches--;
    },
  };
  const service = secretDiscoveryService({ sources: [source], log: SILENT, metrics: agentMetrics() });
  await serveUnix(path, [service], { signal: stop.signal });
  const client = new Client(`unix:${path}`, credentials.createInsecure());
  t.after(() => {
    client.close();
    stop.abort();
  });
  const open = (names: readonly string[]): ClientDuplexStream<Buffer, Buffer> => {
    const call = client.makeBidiStreamRequest(
      `${SERVICE}/StreamSecrets`,
      RAW.requestSerialize,
      RAW.responseDeserialize,
    );
    call.on("error", () => undefined);
    const request = create(DiscoveryRequestSchema, { resourceNames: [...names] });
    call.resume().write(Buffer.from(toBinary(DiscoveryRequestSchema, request)));
    return call;
  };
  return { open, watches: () => watches };
}

function codeOf(call: ClientDuplexStream<Buffer, Buffer>): Promise<number> {
  return new Promise((resolve) => call.on("status", ({ code }) => resolve(code)));
}

test("calls on the SDS socket are bounded, and their places are free again when they end", async (t) => {
  const { open, watches } = await setUp(t);
  const calls = Array.from({ length: 1_024 }, (_, index) => open([`s${index}`]));
  await eventually("all calls", () => watches() === 1_024, 30_000);
  assert.equal(await codeOf(open(["one more"])), RESOURCE_EXHAUSTED);
  // Not all of them: to cancel a thousand at once is an attack that Node ends the connection for.
  for (const call of calls.slice(0, 10)) call.cancel();
  await eventually("ended calls", () => watches() === 1_014, 30_000);
  open(["again"]);
  await eventually("a call", () => watches() === 1_015);
});

test("names that all calls watch are bounded, and so is their length", async (t) => {
  const { open, watches } = await setUp(t);
  const many = open(Array.from({ length: 5_000 }, (_, index) => `s${index}`));
  assert.equal(await codeOf(many), RESOURCE_EXHAUSTED);
  await eventually("none", () => watches() === 0);
  assert.equal(await codeOf(open(["x".repeat(8_193)])), INVALID_ARGUMENT);
});
