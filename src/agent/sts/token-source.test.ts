import assert from "node:assert/strict";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { parseAgentConfig } from "../agent-config.ts";
import { GceToken, isOld } from "./gce-token.ts";
import { jwtAudience, jwtExpiry } from "./jwt.ts";
import { startTokenServer, unsignedJwt } from "./token-server-fixture.ts";
import { tokenSource } from "./token-source.ts";

type Context = { after(fn: () => void): void };
const MINUTE = 60_000;

function source(t: Context, env: Record<string, string>) {
  const file = join(temporaryFolder(t), "token");
  const stop = new AbortController();
  t.after(() => stop.abort());
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const config = parseAgentConfig(env).config.identity;
  return { file, lines, fetch: tokenSource({ config, file, log, signal: stop.signal, running: [] }) };
}

test("tokenSource() reads the file anew each time, and goes on without one", async (t) => {
  const { file, lines, fetch } = source(t, {});
  const token = await fetch;
  assert.equal(await token(), "");
  assert.match(lines.join(""), /There is no service account token in .*: ENOENT/);
  writeFileSync(file, "one\n");
  assert.equal(await token(), "one");
  writeFileSync(file, "two");
  assert.equal(await token(), "two");
});

test("tokenSource() names the file whose token is empty, or cannot be sent, and goes on without one", async (t) => {
  const { file, lines, fetch } = source(t, {});
  const token = await fetch;
  for (const [text, problem] of [
    [" \n", "the file is empty"],
    ["one\ntwo", "it has characters that no header may have"],
    ["one\0", "it has characters that no header may have"],
  ] as const) {
    writeFileSync(file, text);
    assert.equal(await token(), "");
    assert.match(
      lines.at(-1) ?? "",
      new RegExp(`\\twarn\\tThere is no service account token in ${file}: ${problem}\\n`),
    );
  }
});

test("tokenSource() tells the policy for tokens, and that one of them is no more", async (t) => {
  const told = async (env: Record<string, string>) => {
    const { fetch, lines } = source(t, env);
    await fetch;
    return lines.join("");
  };
  assert.match(await told({}), /\tinfo\tJWT policy is third-party-jwt\n/);
  assert.match(await told({ JWT_POLICY: "first-party-jwt" }), /\twarn\tUsing deprecated JWT policy 'first-party-jwt'/);
  assert.match(await told({ JWT_POLICY: "none" }), /\tinfo\tUsing existing certs\n/);
});

test("tokenSource() refuses a type that it does not know", async (t) => {
  await assert.rejects(source(t, { CREDENTIAL_FETCHER_TYPE: "Nobody" }).fetch, {
    code: "IDENTITY_INVALID",
    message: /failed to create credential fetcher: invalid credential fetcher type Nobody/,
  });
});

test("tokenSource() gets the identity of a machine from its metadata server, for the trust domain, and keeps it in the file", async (t) => {
  const server = await startTokenServer(t, () => ({ body: "  machine-token\n" }));
  const { file, fetch } = source(t, {
    CREDENTIAL_FETCHER_TYPE: "GoogleComputeEngine",
    GCE_METADATA_HOST: server.host,
    TRUST_DOMAIN: "p.svc.id.goog",
  });
  assert.equal(await (await fetch)(), "machine-token");
  assert.equal(readFileSync(file, "utf8"), "machine-token");
  assert.equal(statSync(file).mode & 0o777, 0o640);
  assert.deepEqual(
    server.asked.map(({ path, headers }) => [path, headers["metadata-flavor"]]),
    [["/computeMetadata/v1/instance/service-accounts/default/identity?audience=p.svc.id.goog&format=full", "Google"]],
  );
});

test("GceToken says what went wrong: nobody there, no such account, redirected, an answer without end, no address", async (t) => {
  const file = join(temporaryFolder(t), "token");
  const at = (metadataHost: string) => new GceToken({ audience: "a", file, metadataHost, log: SILENT }).fetch();
  const [port] = await freePorts(1);
  await assert.rejects(at(`127.0.0.1:${port}`), { code: "TOKEN_SERVER_FAILED", message: /ECONNREFUSED/ });
  const missing = await startTokenServer(t, () => ({ status: 404, body: "no account" }));
  await assert.rejects(at(missing.host), /Failed to get vm identity token from metadata server: status 404/);
  const elsewhere = await startTokenServer(t, () => ({ body: "stolen" }));
  const redirecting = await startTokenServer(t, () => ({
    status: 302,
    headers: { location: `http://${elsewhere.host}/` },
    body: "",
  }));
  await assert.rejects(at(redirecting.host), /status 302/);
  assert.equal(elsewhere.asked.length, 0);
  const endless = await startTokenServer(t, () => ({ body: "x".repeat(3_000_000) }));
  await assert.rejects(at(endless.host), /the answer is too long/);
  await assert.rejects(at("127.0.0.1:99999"), {
    code: "TOKEN_SERVER_FAILED",
    message: /^GET http:\/\/127\.0\.0\.1:99999\/.*: Invalid URL$/,
  });
});

test("GceToken says when the file cannot be written", async (t) => {
  const server = await startTokenServer(t, () => ({ body: "token" }));
  const token = new GceToken({ audience: "a", file: "/nowhere/token", metadataHost: server.host, log: SILENT });
  await assert.rejects(token.fetch(), { code: "FILE_UNWRITABLE" });
});

test("GceToken replaces a token that is about to end, and leaves others alone", async (t) => {
  const file = join(temporaryFolder(t), "token");
  const lifetimes = [20 * MINUTE, 60 * MINUTE];
  const server = await startTokenServer(t, () => ({
    body: unsignedJwt({ exp: (Date.now() + (lifetimes.shift() ?? 60 * MINUTE)) / 1000 }),
  }));
  const token = new GceToken({ audience: "a", file, metadataHost: server.host, log: SILENT, checkEveryMs: 2 });
  const stop = new AbortController();
  await token.fetch();
  const running = token.run(stop.signal);
  await eventually("a second one", () => server.asked.length === 2);
  await new Promise((resolve) => setTimeout(resolve, 20));
  stop.abort();
  await running;
  assert.equal(server.asked.length, 2);
});

test("isOld() is true shortly before the end, without an end, and for what is no token", () => {
  const token = unsignedJwt({ exp: 10_000 });
  assert.equal(isOld(token, 10_000_000 - 26 * MINUTE), false);
  assert.equal(isOld(token, 10_000_000 - 24 * MINUTE), true);
  assert.equal(isOld(unsignedJwt({}), 0), true);
  assert.equal(isOld("", 0), true);
});

test("jwtExpiry() and jwtAudience() read claims and refuse what has none", () => {
  assert.equal(jwtExpiry(unsignedJwt({ exp: 5 })), 5_000);
  assert.equal(jwtExpiry(unsignedJwt({})), undefined);
  assert.deepEqual(jwtAudience(unsignedJwt({ aud: "a" })), ["a"]);
  assert.deepEqual(jwtAudience(unsignedJwt({ aud: ["a", "b"] })), ["a", "b"]);
  assert.throws(() => jwtAudience(unsignedJwt({ aud: 5 })), /no aud/);
  assert.throws(() => jwtExpiry("a.b"), /invalid number of segments: 2, expected: 3/);
  assert.throws(() => jwtExpiry("a.%%%.c"), /failed to decode the JWT claims/);
  assert.throws(() => jwtExpiry(`a.${Buffer.from("null").toString("base64url")}.c`), /failed to decode/);
});
