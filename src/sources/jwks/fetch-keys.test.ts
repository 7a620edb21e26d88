import assert from "node:assert/strict";
import { createServer, type RequestListener, type Server } from "node:http";
import { createServer as createSecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { KeySetAddress } from "#model/key-set.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { type FetchRules, fetchKeySet, fetchText } from "./fetch-keys.ts";

const KEYS = '{"keys": [{"kty": "RSA", "kid": "one"}]}';
const OPEN: FetchRules = {
  allowLocal: true,
  allowedRanges: [],
  blockedRanges: [],
  insecure: false,
  extraRoots: [],
  clusterDomain: "cluster.local",
};
const never = new AbortController().signal;

/** What a server of keys may do to us, by path. */
const ANSWERS: Readonly<Record<string, RequestListener>> = {
  "/keys": (_, response) => response.end(KEYS),
  "/discovery": (request, response) =>
    response.end(JSON.stringify({ jwks_uri: `http://${request.headers.host}/redirect` })),
  "/discovery-of-nothing": (_, response) => response.end("{}"),
  "/redirect": (_, response) => response.writeHead(302, { location: "/keys" }).end(),
  "/for-ever": (_, response) => response.writeHead(302, { location: "/for-ever" }).end(),
  "/to-metadata": (_, response) => response.writeHead(302, { location: "http://169.254.169.254/keys" }).end(),
  "/to-file": (_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end(),
  "/many-keys": (_, response) => response.end(JSON.stringify({ keys: Array.from({ length: 1_001 }, () => ({})) })),
  "/deep": (_, response) => response.end(`{"keys": [${"[".repeat(500_000)}${"]".repeat(500_000)}]}`),
  "/drip": (_, response) => {
    const timer = setInterval(() => response.write(" "), 5);
    response.on("close", () => clearInterval(timer));
  },
  "/long-header": (_, response) => response.writeHead(200, { "x-long": "x".repeat(100_000) }).end(KEYS),
  "/down": (_, response) => response.writeHead(503).end(KEYS),
  "/no-json": (_, response) => response.end("<html>"),
  "/no-keys": (_, response) => response.end('{"keys": "none"}'),
  "/slow": () => undefined,
  "/slow-body": (_, response) => void response.write('{"keys":'),
  "/endless": (_, response) => {
    const more = () => {
      while (response.write(" ".repeat(65_536)));
      response.once("drain", more);
    };
    more();
  },
  "/broken": (_, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("{");
    setImmediate(() => response.destroy());
  },
};

const CLOSED: FetchRules = { ...OPEN, allowLocal: false };

describe("fetchKeySet()", () => {
  let server: Server;
  let origin: string;
  before(async () => {
    server = createServer((request, response) => ANSWERS[request.url ?? ""]?.(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  function get(path: string, rules: Partial<FetchRules> = {}, address: Partial<KeySetAddress> = {}): Promise<string> {
    return fetchKeySet(
      { id: path.includes(":") ? path : `${origin}${path}`, discovers: false, timeoutMs: 5_000, ...address },
      { ...OPEN, ...rules },
      never,
    );
  }

  test("gives the answer as the server wrote it, also after redirects", async () => {
    assert.equal(await get("/keys"), KEYS);
    assert.equal(await get("/redirect"), KEYS);
  });

  test("asks the issuer where its keys are", async () => {
    assert.equal(await get("/discovery", {}, { discovers: true }), KEYS);
    await assert.rejects(get("/discovery-of-nothing", {}, { discovers: true }), /names no jwks_uri/);
  });

  for (const [path, reason] of [
    ["/down", /status 503/],
    ["/no-json", /no JSON Web Key Set/],
    ["/no-keys", /no JSON Web Key Set/],
    ["/for-ever", /stopped after 10 redirects/],
    ["/many-keys", /more than 1000 keys/],
    ["/deep", /no JSON Web Key Set/],
    ["/long-header", /Header overflow/],
    ["/endless", /more than 1048576 bytes/],
    ["/broken", /broke off/],
    ["/to-file", /neither http nor https/],
    ["ftp://example.com/keys", /neither http nor https/],
    ["http:", /no URL/],
  ] as const) {
    test(`fails for ${path}`, () => assert.rejects(get(path), { code: "KEYS_UNAVAILABLE", message: reason }));
  }

  test("follows no redirect from TLS to plain text, where others could send their own keys", async (t) => {
    const { certificate, key } = selfSigned("localhost");
    const answers: Readonly<Record<string, RequestListener>> = {
      "/redirect": (_, response) => response.writeHead(302, { location: `${origin}/keys` }).end(),
      "/discovery": (_, response) => response.end(JSON.stringify({ jwks_uri: `${origin}/keys` })),
    };
    const secure = createSecureServer({ cert: certificate, key }, (request, response) =>
      (answers[request.url ?? ""] ?? ANSWERS["/keys"])?.(request, response),
    );
    await new Promise<void>((resolve) => secure.listen(0, "127.0.0.1", resolve));
    t.after(() => secure.close());
    const base = `https://localhost:${(secure.address() as AddressInfo).port}`;
    const rules = { extraRoots: [certificate] };
    assert.equal(await get(`${base}/keys`, rules), KEYS);
    await assert.rejects(get(`${base}/redirect`, rules), /in plain text/);
    await assert.rejects(get(`${base}/discovery`, rules, { discovers: true }), /in plain text/);
    assert.equal(await get(`${base}/redirect`, { insecure: true }), KEYS);
  });

  test("waits for a slow server no longer than the rule says", async () => {
    await assert.rejects(get("/slow", {}, { timeoutMs: 20 }), /no answer in time/);
    await assert.rejects(get("/drip", {}, { timeoutMs: 50 }), { code: "KEYS_UNAVAILABLE" });
    await assert.rejects(get("/down", {}, { timeoutMs: Number.MAX_SAFE_INTEGER }), /status 503/);
    await assert.rejects(get("/slow-body", {}, { timeoutMs: 20 }), { code: "KEYS_UNAVAILABLE" });
  });

  test("asks nothing that only this machine can reach, however it is written (CVE-2026-41413)", async () => {
    const { port } = new URL(origin);
    const hosts = ["127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0.0.0.0"];
    const others = ["metadata.google.internal", "[fe80::1]", "10.0.0.1", "[64:ff9b::7f00:1]", "[fd00:ec2::254]"];
    for (const host of [...hosts, ...others, "169.254.169.254"]) {
      const url = `http://${host}:${port}/keys`;
      await assert.rejects(get(url, { allowLocal: false }), { code: "KEYS_REFUSED" }, host);
      await assert.rejects(fetchText(url, CLOSED, AbortSignal.timeout(5_000)), { code: "KEYS_REFUSED" }, host);
    }
  });

  test("names the settings that allow a private address", () =>
    assert.rejects(get("http://192.168.1.1/keys", { allowLocal: false }), {
      message:
        '"192.168.1.1" is a private address: ALLOWED_CIDRS_IN_JWKS_URIS allows private ranges, PILOT_JWKS_ALLOW_LOCAL local addresses too',
    }));

  test("follows no redirect into a blocked range", async () => {
    const rules = { blockedRanges: ["169.254.0.0/16", "fd00::/8"] };
    assert.equal(await get("/redirect", rules), KEYS);
    await assert.rejects(get("/to-metadata", rules), { code: "KEYS_REFUSED" });
    await assert.rejects(get("/keys", { blockedRanges: ["127.0.0.0/8"] }), { code: "KEYS_REFUSED" });
  });

  test("looks at the address that a name leads to", async () => {
    const { port } = new URL(origin);
    await assert.rejects(get(`http://localhost:${port}/keys`, { blockedRanges: ["127.0.0.0/8", "::1/128"] }), {
      code: "KEYS_REFUSED",
    });
  });
});
