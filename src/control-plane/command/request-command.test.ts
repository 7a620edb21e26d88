import assert from "node:assert/strict";
import { test } from "node:test";
import { HttpListener } from "#lib/net/http-listener.ts";
import { requestCommand } from "./request-command.ts";

async function request(address: string, ...args: string[]): Promise<{ output: string; failures: string[] }> {
  const failures: string[] = [];
  let output = "";
  const write = (text: string) => {
    output += text;
  };
  const command = requestCommand({ address, write, fail: (message) => failures.push(message) });
  await command.parseAsync(args, { from: "user" });
  return { output, failures };
}

test("request prints an answer, also one of 404, and fails on other errors", async () => {
  const listener = new HttpListener({
    flag: "",
    address: { host: "127.0.0.1", port: 0 },
    routes: (app) => {
      app.get("/debug/syncz", () => "[]");
      app.get("/broken", (_, reply) => reply.code(500).send("no"));
    },
  });
  const address = await listener.start();
  assert.deepEqual(await request(address, "GET", "/debug/syncz"), { output: "[]\n", failures: [] });
  assert.deepEqual(await request(address, "GET", "debug/syncz"), { output: "[]\n", failures: [] });
  assert.match((await request(address, "GET", "/nothing")).output, /not found/);
  assert.deepEqual((await request(address, "GET", "/broken")).failures, [
    `http://${address}/broken answered with status 500: no`,
  ]);
  await listener.stop(1000);
  assert.match((await request(address, "GET", "/debug/syncz")).failures.join(), /^cannot ask http:/);
});
