import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer, request } from "node:https";
import { connect, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { selfSigned } from "../../../test/support/certificates.ts";
import { TunnelAgent } from "./tunnel-agent.ts";

const ORIGIN = selfSigned("api.example");

async function listen(t: TestContext, server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function startProxy(t: TestContext, status: number) {
  const origin = await listen(
    t,
    createHttpsServer({ cert: ORIGIN.certificate, key: ORIGIN.key }, (_, response) => response.end("hello")),
  );
  const asked: string[] = [];
  const proxy = createHttpServer().on("connect", ({ url = "" }: IncomingMessage, client: Socket) => {
    asked.push(url);
    if (status !== 200) {
      client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
      return;
    }
    client.write("HTTP/1.1 200 OK\r\n\r\n");
    const server = connect(origin, "127.0.0.1");
    server.pipe(client).pipe(server);
    for (const socket of [client, server]) socket.on("error", () => undefined);
  });
  return { asked, url: `http://127.0.0.1:${await listen(t, proxy)}` };
}

async function get(agent: TunnelAgent): Promise<string> {
  const sent = request("https://api.example:6443/", { agent, ca: ORIGIN.certificate }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response) text += chunk;
  return text;
}

test("a TunnelAgent verifies the server behind the proxy by its name, and keeps the connection", async (t) => {
  const { asked, url } = await startProxy(t, 200);
  const agent = new TunnelAgent(url, { keepAlive: true });
  t.after(() => agent.destroy());
  assert.equal(await get(agent), "hello");
  assert.equal(await get(agent), "hello");
  assert.deepEqual(asked, ["api.example:6443"]);
});

test("a TunnelAgent reports a proxy that opens no tunnel", async (t) => {
  const { url } = await startProxy(t, 407);
  await assert.rejects(get(new TunnelAgent(url)), /No connection to api\.example:6443 through the proxy .*407/);
});
