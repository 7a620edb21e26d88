import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpListener } from "./http-listener.ts";

const OPTIONS = { flag: "--httpAddr", address: { host: "127.0.0.1", port: 0 } };

test("HttpListener serves its routes on a free port and stops", async () => {
  const listener = new HttpListener({ ...OPTIONS, routes: (app) => app.get("/", () => "hello") });
  const address = await listener.start();
  assert.equal(await (await fetch(`http://${address}/`)).text(), "hello");
  await listener.stop(1000);
  await assert.rejects(fetch(`http://${address}/`));
});

test("HttpListener on all addresses is reached by IPv4", async () => {
  const address = { host: "", port: 0 };
  const listener = new HttpListener({ ...OPTIONS, address, routes: (app) => app.get("/", () => "hello") });
  const port = (await listener.start()).split(":").at(-1);
  assert.equal(await (await fetch(`http://127.0.0.1:${port}/`)).text(), "hello");
  await listener.stop(1000);
});

test("HttpListener cuts a request that does not end in the grace time", async () => {
  const asked = Promise.withResolvers<void>();
  const routes = (app: Parameters<ConstructorParameters<typeof HttpListener>[0]["routes"]>[0]) =>
    void app.get("/", () => {
      asked.resolve();
      return new Promise(() => undefined);
    });
  const listener = new HttpListener({ ...OPTIONS, routes });
  const answer = fetch(`http://${await listener.start()}/`);
  const cut = assert.rejects(answer);
  await asked.promise;
  await listener.stop(0);
  await cut;
});

test("HttpListener names flag, address and reason when it cannot listen", async () => {
  const first = new HttpListener({ ...OPTIONS, routes: () => undefined });
  const port = Number((await first.start()).split(":")[1]);
  const second = new HttpListener({ ...OPTIONS, address: { host: "127.0.0.1", port }, routes: () => undefined });
  await assert.rejects(second.start(), {
    code: "LISTEN_FAILED",
    message: `cannot listen on 127.0.0.1:${port} (--httpAddr): the port is in use by another process`,
  });
  await first.stop(1000);
  const elsewhere = new HttpListener({ ...OPTIONS, address: { host: "192.0.2.1", port: 0 }, routes: () => undefined });
  await assert.rejects(elsewhere.start(), { code: "LISTEN_FAILED", message: /the machine has no such address/ });
});
