import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { fetchText } from "../http-client.ts";
import { GoogleExchange } from "./google-exchange.ts";
import { parseExchangeRequest } from "./request.ts";
import { serveSts, type TokenManager } from "./server.ts";
import { startTokenServer, type Tell } from "./token-server-fixture.ts";

type Context = { after(fn: () => void): void };

const FORM = {
  grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
  subject_token: "subject",
  subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
};

/** All that one of its answers may hold. */
interface Body {
  readonly access_token: string;
  readonly expires_in: number;
  readonly error: string;
  readonly error_description: string;
}

async function serve(t: Context, manager: TokenManager) {
  const stop = new AbortController();
  t.after(() => stop.abort());
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const port = await serveSts({ host: "127.0.0.1", port: 0, manager, log }, stop.signal);
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return {
      status: response.status,
      type: response.headers.get("content-type"),
      caching: ["cache-control", "pragma"].map((name) => response.headers.get(name)),
      body: (await response.json()) as Body,
    };
  };
  const post = (fields: Record<string, string>) => ask("/token", { method: "POST", body: new URLSearchParams(fields) });
  return { port, ask, post, lines, stop };
}

/** Google's two servers in one. */
async function google(t: Context, tell?: Tell) {
  const answers: Tell = (asked) =>
    tell?.(asked) ??
    (asked.path === "/v1/token"
      ? { body: JSON.stringify({ access_token: "federated", token_type: "Bearer", expires_in: 3600 }) }
      : {
          body: JSON.stringify({ accessToken: "access", expireTime: new Date(Date.now() + 3_600_000).toISOString() }),
        });
  const server = await startTokenServer(t, answers);
  const manager = new GoogleExchange({
    secureTokenEndpoint: `http://${server.host}/v1/token`,
    accessTokenEndpoint: `http://${server.host}/projects/-/serviceAccounts/service-%s@x:generateAccessToken`,
    projectNumber: "1234",
    trustDomain: "p.svc.id.goog",
    provider: "https://container.googleapis.com/v1/projects/p/locations/l/clusters/c",
    pauseMs: 1,
  });
  return { server, manager };
}

test("STS takes a federated token whose end is beyond all dates, and names the server whose token is none", async (t) => {
  const federated = (body: string) => google(t, ({ path }) => (path === "/v1/token" ? { body } : undefined));
  const eternal = await federated('{"access_token": "federated", "expires_in": 1e300}');
  const { post } = await serve(t, eternal.manager);
  assert.equal((await post(FORM)).body.access_token, "access");
  assert.equal(eternal.manager.status().length, 2);
  const broken = await federated('{"access_token": "two\\nlines", "expires_in": 3600}');
  const { body } = await (await serve(t, broken.manager)).post(FORM);
  assert.match(body.error_description, /^POST http:\/\/.*:generateAccessToken: Invalid character in header content/);
});

test("STS exchanges a token by way of Google, in its words", async (t) => {
  const { server, manager } = await google(t);
  const { post } = await serve(t, manager);
  const { status, type, caching, body } = await post(FORM);
  assert.deepEqual([status, type], [200, "application/json"]);
  assert.deepEqual(caching, ["no-store", "no-cache"]);
  const { expires_in: expiresIn, ...rest } = body;
  assert.deepEqual(rest, {
    access_token: "access",
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
  });
  assert.ok(expiresIn > 3_500 && expiresIn <= 3_600);
  assert.deepEqual(
    server.asked.map(({ method, path, body: text }) => [method, path, JSON.parse(text)]),
    [
      [
        "POST",
        "/v1/token",
        {
          audience:
            "identitynamespace:p.svc.id.goog:https://container.googleapis.com/v1/projects/p/locations/l/clusters/c",
          grantType: FORM.grant_type,
          requestedTokenType: "urn:ietf:params:oauth:token-type:access_token",
          subjectTokenType: FORM.subject_token_type,
          subjectToken: "subject",
          scope: "https://www.googleapis.com/auth/cloud-platform",
        },
      ],
      [
        "POST",
        "/projects/-/serviceAccounts/service-1234@x:generateAccessToken",
        { delegates: [], scope: ["https://www.googleapis.com/auth/cloud-platform"], lifetime: "3600s" },
      ],
    ],
  );
  assert.equal(server.asked[1]?.headers.authorization, "Bearer federated");
});

test("STS keeps access tokens for whoever showed the same token, and for nobody else", async (t) => {
  const { server, manager } = await google(t);
  const { post } = await serve(t, manager);
  await Promise.all([post(FORM), post(FORM), post(FORM)]);
  assert.equal(server.asked.length, 2);
  await post({ ...FORM, subject_token: "another" });
  assert.equal(server.asked.length, 4);
  await post({ ...FORM, scope: "narrow" });
  assert.equal(JSON.parse(server.asked[4]?.body ?? "").scope, "narrow");
});

test("STS fetches an access token anew when little of it is left", async (t) => {
  const { server, manager } = await google(t, ({ path }) =>
    path === "/v1/token"
      ? undefined
      : { body: JSON.stringify({ accessToken: "short", expireTime: new Date(Date.now() + 200_000).toISOString() }) },
  );
  const { post } = await serve(t, manager);
  await post(FORM);
  await post(FORM);
  assert.equal(server.asked.length, 4);
});

test("STS tells what it got without the tokens, and never on its port", async (t) => {
  const { manager } = await google(t);
  const { post, ask } = await serve(t, manager);
  await post(FORM);
  for (const path of ["/stsStatus", "/debug"]) assert.equal((await ask(path)).status, 404, path);
  assert.deepEqual(
    manager.status().map(({ token_type, ...rest }) => [token_type, Object.keys(rest)]),
    [
      ["federated token", ["issue_time", "expire_time"]],
      ["access token", ["issue_time", "expire_time"]],
    ],
  );
});

test("STS rejects requests that a browser sends for a web page", async (t) => {
  const { manager, server } = await google(t);
  const { port } = await serve(t, manager);
  for (const headers of [{ host: "attacker.example" }, { origin: "https://attacker.example" }]) {
    const { status } = await fetchText({
      host: "127.0.0.1",
      port,
      path: "/token",
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: String(new URLSearchParams(FORM)),
      timeoutMs: 10_000,
    });
    assert.equal(status, 403);
  }
  assert.equal(server.asked.length, 0);
});

test("STS tells with invalid_target that Google gives no token, and why", async (t) => {
  const answers = [
    [{ status: 401, body: "bad audience" }, /failed to exchange federated token \(HTTP status 401\): bad audience/, 1],
    [{ status: 503, body: "later" }, /failed to exchange federated token \(HTTP status 503\): later/, 5],
    [{ body: "not json" }, /failed to unmarshal federated token response data/, 1],
    [{ body: "{}" }, /federated token response does not have access token/, 1],
  ] as const;
  for (const [told, expected, attempts] of answers) {
    const { server, manager } = await google(t, ({ path }) => (path === "/v1/token" ? told : undefined));
    const { post, lines } = await serve(t, manager);
    const { status, body } = await post(FORM);
    assert.deepEqual([status, body.error], [500, "invalid_target"]);
    assert.match(body.error_description, expected);
    assert.equal(server.asked.length, attempts);
    assert.match(lines.join(""), /token manager fails to generate token/);
  }
});

test("STS goes on after one failure of Google, and takes an hour where Google says no end", async (t) => {
  let failures = 2;
  const { manager } = await google(t, ({ path }) => {
    if (path === "/v1/token" && failures-- > 0) return { status: 500, body: "" };
    return path === "/v1/token" ? undefined : { body: JSON.stringify({ accessToken: "a", expireTime: "soon" }) };
  });
  const { post } = await serve(t, manager);
  const { status, body } = await post(FORM);
  assert.equal(status, 200);
  assert.ok(body.expires_in > 3_500);
});

const WRONG: readonly (readonly [Record<string, string>, RegExp])[] = [
  [{ ...FORM, grant_type: "password" }, /grant_type is invalid, should be urn:.*:token-exchange but get password/],
  [{ ...FORM, grant_type: "" }, /grant_type is invalid/],
  [{ ...FORM, subject_token: "" }, /subject_token is empty/],
  [{ ...FORM, subject_token_type: "urn:x" }, /subject_token_type is invalid, should be .*:jwt but get urn:x/],
  [{ ...FORM, actor_token: "a" }, /actor_token and actor_token_type/],
  [{ ...FORM, actor_token_type: "a" }, /actor_token and actor_token_type/],
];

test("STS answers each wrong request with invalid_request and what is wrong", async (t) => {
  const { manager } = await google(t);
  const { post, ask, lines } = await serve(t, manager);
  for (const [fields, expected] of WRONG) {
    const { status, type, body } = await post(fields);
    assert.deepEqual([status, type, body.error], [400, "application/json", "invalid_request"]);
    assert.match(body.error_description, expected);
  }
  const get = await ask("/token");
  assert.deepEqual([get.status, get.body.error], [400, "invalid_request"]);
  assert.match(get.body.error_description, /should be POST but get GET/);
  const json = await ask("/token", { method: "POST", body: "{}", headers: { "content-type": "application/json" } });
  assert.match(json.body.error_description, /should be application\/x-www-form-urlencoded but get application\/json/);
  const twice = await ask("/token", {
    method: "POST",
    body: new URLSearchParams([...Object.entries(FORM), ["scope", "a"], ["scope", "b"]]),
  });
  assert.match(twice.body.error_description, /scope is given more than once/);
  const huge = await post({ ...FORM, subject_token: "x".repeat(300_000) });
  assert.match(huge.body.error_description, /longer than/);
  assert.equal((await ask("/other")).status, 404);
  assert.match(lines.join(""), /STS request is invalid/);
});

test("parseExchangeRequest() takes all fields of the draft, and a charset", () => {
  const body = new URLSearchParams({
    ...FORM,
    scope: "s",
    resource: "r",
    audience: "a",
    requested_token_type: "urn:ietf:params:oauth:token-type:access_token",
    actor_token: "t",
    actor_token_type: "urn:ietf:params:oauth:token-type:jwt",
  }).toString();
  const contentType = "application/x-www-form-urlencoded; charset=UTF-8";
  assert.deepEqual(parseExchangeRequest({ method: "POST", contentType, body }), {
    subjectToken: "subject",
    scope: "s",
  });
});

test("STS survives garbage and callers that say nothing", async (t) => {
  const { manager } = await google(t);
  const { port, post } = await serve(t, manager);
  const silent = connect(port, "127.0.0.1");
  t.after(() => silent.destroy());
  const rude = connect(port, "127.0.0.1")
    .on("error", () => undefined)
    .resume();
  rude.end(Buffer.alloc(10_000, 0xff));
  await once(rude, "close");
  assert.equal((await post(FORM)).status, 200);
});

test("STS says that its port is taken, and ends with the signal", async (t) => {
  const { manager } = await google(t);
  const { port, stop } = await serve(t, manager);
  const log = createLogger({ write: () => undefined });
  await assert.rejects(serveSts({ host: "127.0.0.1", port, manager, log }, stop.signal), {
    code: "STS_NOT_LISTENING",
    message: new RegExp(`Cannot listen on 127.0.0.1 port ${port} \\(--stsPort\\)`),
  });
  stop.abort();
  await assert.rejects(fetch(`http://127.0.0.1:${port}/stsStatus`));
});
