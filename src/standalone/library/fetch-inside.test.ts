import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import type { FetchOptions } from "./api.ts";
import { CALL_COMMAND, fetchBy } from "./fetch-inside.ts";
import { startProgram } from "./program.ts";

/** A server on this machine; the program that calls it runs here instead of inside a workload. */
async function serving(answer: RequestListener): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(answer);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.close().closeAllConnections();
    },
  };
}

function call(url: string, init: FetchOptions = {}): Promise<Response> {
  return fetchBy(startProgram({ argv: CALL_COMMAND, signal: init.signal }), url, init);
}

test("fetchBy() sends method, headers and any bytes, and answers with those of the server", async () => {
  await using server = await serving(async (request, response) => {
    const chunks = await request.toArray();
    response.writeHead(418, { "x-method": request.method, "x-got": request.headers["x-sent"] });
    response.end(Buffer.concat(chunks));
  });
  const body = Uint8Array.from([0, 10, 13, 255, 10]);
  const answer = await call(server.url, { method: "PUT", headers: { "x-sent": "a\u00e4" }, body });
  assert.deepEqual([answer.status, answer.headers.get("x-method")], [418, "PUT"]);
  assert.equal(answer.headers.get("x-got"), "a\u00e4");
  assert.deepEqual(new Uint8Array(await answer.arrayBuffer()), body);
});

test("fetchBy() takes answers without a body, and leaves redirects alone when told to", async () => {
  await using server = await serving((request, response) => {
    response.writeHead(request.url === "/" ? 302 : 204, { location: "/there" }).end();
  });
  assert.equal((await call(server.url)).status, 204);
  const redirect = await call(server.url, { redirect: "manual" });
  assert.deepEqual([redirect.status, redirect.headers.get("location")], [302, "/there"]);
});

test("fetchBy() gives the head before the body has come, and the program ends when nobody reads on", async () => {
  let gone = Promise.withResolvers<void>();
  await using server = await serving((_, response) => {
    response.once("close", () => gone.resolve());
    response.writeHead(200).write("first\n");
  });
  const answer = await call(server.url);
  const reader = answer.body?.getReader();
  assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), "first\n");
  await reader?.cancel();
  await gone.promise;
  gone = Promise.withResolvers();
  const stop = new AbortController();
  const endless = (await call(server.url, { signal: stop.signal })).text();
  stop.abort();
  await assert.rejects(endless, { name: "AbortError" });
  await gone.promise;
});

test("fetchBy() says why there is no answer", async () => {
  const url = "http://127.0.0.1:1/";
  await assert.rejects(call(url), {
    code: "FETCH_FAILED",
    message: /^Cannot fetch "http:\/\/127.0.0.1:1\/": fetch failed: /,
  });
  await assert.rejects(call("no address"), { code: "FETCH_FAILED" });
  await assert.rejects(fetchBy(startProgram({ argv: ["sh", "-c", "echo no node >&2; exit 127"] }), url, {}), {
    code: "FETCH_FAILED",
    message: /no node$/,
  });
});
