import assert from "node:assert/strict";
import { test } from "node:test";
import fastify from "fastify";
import type { ScopeSettings } from "#lib/log/log.ts";
import { createLogger } from "#lib/log/log.ts";
import { addControlzRoutes, TOPICS } from "./controlz.ts";

function controlz({ remoteAddress = "127.0.0.1", isPrivate = true } = {}) {
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const ads = log.scope("ads");
  const did: string[] = [];
  const app = fastify();
  addControlzRoutes(app, {
    isPrivate,
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
  const ask = (method: "GET" | "PUT", url: string, payload?: string, headers: Readonly<Record<string, string>> = {}) =>
    app.inject({
      method,
      url,
      remoteAddress,
      headers: { host: "localhost:9876", ...headers },
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
  const { ask } = controlz({ remoteAddress: "10.0.0.9", isPrivate: false });
  assert.equal((await ask("GET", "/scopej")).statusCode, 401);
  assert.equal((await ask("GET", "/scopej", undefined, { authorization: "default" })).statusCode, 403);
  assert.equal((await ask("GET", "/scopej", undefined, { authorization: "istio-system" })).statusCode, 200);
});

test("a port shows no environment and no memory, and cannot end the process", async () => {
  for (const remoteAddress of ["127.0.0.1", "10.0.0.9"]) {
    const { ask, did } = controlz({ remoteAddress, isPrivate: false });
    const headers = { authorization: "istio-system" };
    for (const path of ["/envz", "/envj", "/envj/", "/memz", "/memj", "/signalj", "/signalz"])
      assert.equal((await ask("GET", path, undefined, headers)).statusCode, 404, path);
    for (const path of ["/homej/exit", "/signalj/SIGUSR1", "/memj/forcecollection"])
      assert.equal((await ask("PUT", path, undefined, headers)).statusCode, 404, path);
    assert.deepEqual(did, []);
    const page = (await ask("GET", "/", undefined, headers)).body;
    assert.match(page, /Logging Scopes/);
    assert.doesNotMatch(page, /Environment/);
  }
});

test("a web page reaches nothing through DNS rebinding, and a page of another origin neither", async () => {
  for (const isPrivate of [true, false]) {
    const { ask, did, scopes } = controlz({ isPrivate });
    for (const headers of [{ host: "attacker.example:9876" }, { origin: "https://attacker.example" }]) {
      assert.equal((await ask("GET", "/scopej", undefined, headers)).statusCode, 403);
      assert.equal((await ask("PUT", "/scopej/ads", '{"output_level":"debug"}', headers)).statusCode, 403);
      assert.equal((await ask("PUT", "/homej/exit", undefined, headers)).statusCode, 403);
    }
    assert.deepEqual([did, scopes.get("ads")?.level], [[], "info"]);
    const own = { origin: "http://localhost:9876" };
    assert.equal((await ask("PUT", "/scopej/ads", '{"output_level":"debug"}', own)).statusCode, 202);
  }
});
