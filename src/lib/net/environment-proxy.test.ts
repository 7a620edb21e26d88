import assert from "node:assert/strict";
import { test } from "node:test";
import { environmentProxy } from "./environment-proxy.ts";

const PROXY = "http://proxy:3128";
const direct = (server: string, NO_PROXY: string) =>
  environmentProxy(server, { HTTPS_PROXY: PROXY, HTTP_PROXY: PROXY, NO_PROXY }) === undefined;

test("the scheme of the server decides which variable counts", () => {
  const environment = { HTTPS_PROXY: "https://tls:1", http_proxy: "plain:2" };
  assert.equal(environmentProxy("https://api:6443", environment), "https://tls:1");
  assert.equal(environmentProxy("http://api:8080", environment), "http://plain:2");
  assert.equal(environmentProxy("https://api:6443", {}), undefined);
  assert.equal(environmentProxy("https://api:6443", { HTTPS_PROXY: "", https_proxy: "a:1" }), "http://a:1");
});

test("this machine itself is called directly", () => {
  for (const host of ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"]) assert.ok(direct(`https://${host}:1`, ""), host);
});

test("NO_PROXY names addresses, ranges, names and ports", () => {
  const cases: readonly [string, string, boolean][] = [
    ["https://10.96.0.1:443", "10.96.0.0/16", true],
    ["https://10.97.0.1:443", "10.96.0.0/16,10.96.0.1", false],
    ["https://10.96.0.1", " 10.96.0.1 , other", true],
    ["https://10.96.0.1:6443", "10.96.0.1:443", false],
    ["https://10.96.0.1", "10.96.0.1:443", true],
    ["https://[fd00::1]:6443", "fd00::/8", true],
    ["https://[fd00::1]:6443", "[fd00::1]:6443", true],
    ["https://[fd00::1]:6443", "fd00::1", true],
    ["https://api.Example.com", "example.com", true],
    ["https://example.com", "example.com", true],
    ["https://myexample.com", "example.com", false],
    ["https://example.com", ".example.com", false],
    ["https://api.example.com", "*.example.com", true],
    ["https://api.example.com:6443", "example.com:6443", true],
    ["https://api.example.com", "*", true],
    ["https://api.example.com", ",, ,10.0.0.0/99,x/8,/,:,[", false],
  ];
  for (const [server, exceptions, expected] of cases) {
    assert.equal(direct(server, exceptions), expected, `${server} with NO_PROXY=${exceptions}`);
  }
});

test("a proxy of another kind is refused, without a word of what is in its URL", () => {
  for (const value of ["socks5://user:secret@proxy", "http://[", "::"]) {
    assert.throws(
      () => environmentProxy("https://api:1", { HTTPS_PROXY: value }),
      (error: Error) => /HTTPS_PROXY is no URL/.test(error.message) && !error.message.includes("secret"),
    );
  }
});
