import assert from "node:assert/strict";
import { test } from "node:test";
import { knownFormat } from "./format-string.ts";

test("commands that Envoy knows stay", () => {
  for (const text of [
    "%START_TIME% %START_TIME(%Y-%m-%d (UTC))% %REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH):10%",
    "%FILTER_STATE(key:PLAIN)%%DYNAMIC_METADATA(a:b:c):3% %UPSTREAM_METADATA(ns:key)%",
    "%CEL(request.headers['x-id'])%",
    '%CEL(connection.sha256_peer_certificate_digest)% %CEL(xds.node.metadata["a b"].List[0].if):9%',
    "%METADATA(DYNAMIC:envoy.filters.http.jwt_authn:sub)% %METADATA(ROUTE:istio:config):9% %METADATA(CLUSTER)%",
    "%COMMON_DURATION(DS_RX_BEG:US_TX_END:us)% %PATH% %PATH(NQ:ORIG):9% %QUERY_PARAMS(DECODED)%",
    "%REQUESTED_SERVER_NAME% %REQUESTED_SERVER_NAME(SNI_FIRST:ORIG_OR_HOST)%",
    "100%%",
    "no command",
    "",
  ]) {
    assert.equal(knownFormat(text, "header"), text);
  }
});

test("what is no command, or none with such arguments, becomes plain text", () => {
  assert.equal(knownFormat("100%", "header"), "100%%");
  assert.equal(knownFormat("%FOO% %PROTOCOL%", "header"), "%%FOO%% %PROTOCOL%");
  assert.equal(knownFormat("%req(x)%", "header"), "%%req(x)%%");
  assert.equal(knownFormat("%REQ%", "header"), "%%REQ%%");
  assert.equal(knownFormat("%REQ(a?b?c)%", "header"), "%%REQ(a?b?c)%%");
  assert.equal(knownFormat("%PROTOCOL(x)%", "header"), "%%PROTOCOL(x)%%");
  assert.equal(knownFormat("%FILTER_STATE(a:BAD)%", "header"), "%%FILTER_STATE(a:BAD)%%");
  assert.equal(knownFormat("%CEL(a b c()%", "header"), "%%CEL(a b c()%%");
  assert.equal(knownFormat("%CEL(if)% %CEL(a.in)%", "header"), "%%CEL(if)%% %%CEL(a.in)%%");
  assert.equal(knownFormat("%METADATA(OTHER:a)%", "header"), "%%METADATA(OTHER:a)%%");
  assert.equal(knownFormat("%COMMON_DURATION(a:b:s)%", "header"), "%%COMMON_DURATION(a:b:s)%%");
  assert.equal(knownFormat("%PATH(ALL)%", "header"), "%%PATH(ALL)%%");
  assert.equal(knownFormat("%START_TIME(%Y\n)%", "header"), "%%START_TIME(%%Y\n)%%");
});

test("a percent sign does not hide the command behind it", () => {
  assert.equal(knownFormat("5% of %PROTOCOL%", "header"), "5%% of %PROTOCOL%");
});

test("a command that needs an extension is known to access logs only", () => {
  const text = "%REQ_WITHOUT_QUERY(:PATH)%";
  assert.equal(knownFormat(text, "log"), text);
  assert.equal(knownFormat(text, "header"), "%%REQ_WITHOUT_QUERY(:PATH)%%");
});
