import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { errorText } from "../mesh-error.ts";
import { openTunnel } from "./http-tunnel.ts";

test("openTunnel() shows credentials, gives what comes at once, and says what the proxy answered", async (t) => {
  const asked: unknown[] = [];
  const server = createServer();
  server.on("connect", ({ url = "", headers }, socket) => {
    asked.push([url, headers.host, headers["proxy-authorization"]]);
    if (url.startsWith("no.example")) socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    else socket.end("HTTP/1.1 200 OK\r\n\r\nhello");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const proxy = `http://me:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const signal = AbortSignal.timeout(10_000);
  const socket = await openTunnel(proxy, "yes.example:443", signal);
  assert.equal(String((await once(socket, "data"))[0]), "hello");
  const authorization = `Basic ${Buffer.from("me:p@ss").toString("base64")}`;
  assert.deepEqual(asked, [["yes.example:443", "yes.example:443", authorization]]);
  const told = await openTunnel(proxy, "no.example:443", signal).catch(errorText);
  assert.match(String(told), /No connection to no\.example:443 through the proxy 127\.0\.0\.1:\d+: it answered 403/);
  await assert.rejects(openTunnel(proxy, "yes.example:443", AbortSignal.abort(new Error("too late"))));
});
