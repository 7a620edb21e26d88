import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { unaryMethod } from "#lib/grpc/unary-method.ts";
import { temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { RAW } from "../../test/support/raw-messages.ts";
import { serveUnix } from "./unix-server.ts";

const ECHO = { "/test.Service/Echo": unaryMethod(async (request) => request) };

test("serveUnix() refuses requests beyond the limit, and serves those within it", async (t) => {
  const path = join(temporaryFolder(t), "socket");
  const stop = new AbortController();
  await serveUnix(path, [ECHO], { signal: stop.signal, maxRequestBytes: 1000, maxStreams: 10 });
  const client = new Client(`unix:${path}`, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  t.after(() => {
    client.close();
    stop.abort();
  });
  const echo = (bytes: number) =>
    new Promise<number>((resolve, reject) => {
      client.makeUnaryRequest(
        "/test.Service/Echo",
        RAW.requestSerialize,
        RAW.responseDeserialize,
        Buffer.alloc(bytes),
        (error, answer) => (error === null ? resolve(answer?.length ?? -1) : reject(error)),
      );
    });
  assert.equal(await echo(1000), 1000);
  await assert.rejects(echo(1001), (error: ServiceError) => error.code === status.RESOURCE_EXHAUSTED);
  assert.equal(await echo(10), 10);
});
