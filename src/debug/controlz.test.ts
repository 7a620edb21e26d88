import assert from "node:assert/strict";
import { test } from "node:test";
import fastify from "fastify";
import type { ScopeSettings } from "#lib/log.ts";
import { createLogger } from "#lib/log.ts";
import { addControlzRoutes, TOPICS } from "./controlz.ts";

function controlz(remoteAddress = "127.0.0.1") {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const ads = log.scope("ads");
  const did: string[] = [];
  const app = fastify();
  addControlzRoutes(app, {
    scopes: log.scopes,
    env: { B: "<b>", A: "1" },
    args: ["pilot-discovery", "discovery"],
    version: { version: "1" },
    exit: () => did.push("exit"),
    signal: (name) => did.push(name),
    authenticate: async ({ authorization }) =>
      authorization === undefined
        ? { refused: "no token" }
        : { caller: { identity: "", namespace: authorization, serviceAccount: "", provedBy: "jwt" } },
    seesAll: (namespace: string) => namespace === "istio-system",
  });
  const ask = (method: "GET" | "PUT", url: string, payload?: string, authorization?: string) =>
    app.inject({
      method,
      url,
      remoteAddress,
      headers: { ...(authorization && { authorization }) },
      ...(payload && { payload }),
    });
  return { ask, ads, lines, did, scopes: log.scopes };
}

test("every topic has a page for people and one for programs", async () => {
  const { ask } = controlz();
  for (const { prefix, title } of TOPICS) {
    const page = await ask("GET", `/${prefix}z`);
    assert.equal(page.statusCode, 200);
    assert.ok(page.body.includes(`<h1>${title}</h1>`));
    for (const slash of ["", "/"]) JSON.parse((await ask("GET", `/${prefix}j${slash}`)).body);
  }
  assert.match((await ask("GET", "/")).body, /<h1>Home<\/h1>/);
  assert.match((await ask("GET", "/envz")).body, /&lt;b&gt;/);
  assert.deepEqual((await ask("GET", "/envj")).json(), [
    { name: "A", value: "1" },
    { name: "B", value: "<b>" },
  ]);
  assert.equal((await ask("GET", "/procj")).json().pid, process.pid);
});

test("the level of a scope is changed while it is in use", async () => {
  const { ask, ads, lines } = controlz();
  ads.debug("not yet");
  assert.deepEqual((await ask("GET", "/scopej/ads")).json(), {
    name: "ads",
    description: "Lines of the scope ads",
    output_level: "info",
    stack_trace_level: "none",
    log_callers: false,
  });
  assert.equal((await ask("PUT", "/scopej/ads", '{"output_level":"debug"}')).statusCode, 202);
  ads.debug("now");
  assert.deepEqual(
    lines.map((line) => line.split("\t").slice(1).join(" ").trim()),
    ["debug ads now"],
  );
  assert.deepEqual(
    (await ask("GET", "/scopej"))
      .json()
      .map(({ name, output_level }: ScopeSettings & { name: string; output_level: string }) => [name, output_level]),
    [
      ["ads", "debug"],
      ["default", "info"],
    ],
  );
});

test("what is no scope, no JSON and no level changes nothing", async () => {
  const { ask, scopes } = controlz();
  assert.equal((await ask("GET", "/scopej/other")).statusCode, 400);
  assert.equal((await ask("PUT", "/scopej/other", "{}")).statusCode, 400);
  assert.equal((await ask("PUT", "/scopej/__proto__", "{}")).statusCode, 400);
  assert.equal((await ask("PUT", "/scopej/ads", "{")).statusCode, 400);
  assert.equal((await ask("PUT", "/scopej/ads", '{"output_level":"loud"}')).statusCode, 202);
  assert.equal(scopes.get("ads")?.level, "info");
});

test("it can be told to end, to collect garbage, and of a signal", async () => {
  const { ask, did } = controlz();
  for (const path of ["/homej/exit", "/memj/forcecollection", "/signalj/SIGUSR1"]) {
    assert.equal((await ask("PUT", path)).statusCode, 202, path);
  }
  assert.deepEqual(did, ["exit", "SIGUSR1"]);
});

test("beyond this machine it is for callers of the root namespace", async () => {
  const { ask } = controlz("10.0.0.9");
  assert.equal((await ask("GET", "/envj")).statusCode, 401);
  assert.equal((await ask("GET", "/envj", undefined, "default")).statusCode, 403);
  assert.equal((await ask("GET", "/envj", undefined, "istio-system")).statusCode, 200);
});
