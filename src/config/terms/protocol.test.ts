import assert from "node:assert/strict";
import { test } from "node:test";
import { isHttp, isHttp2, isTcp, isTls, PROTOCOL_NAMES, parseProtocol } from "./protocol.ts";

test("parseProtocol() reads each name in any case, and others as undeclared", () => {
  for (const name of PROTOCOL_NAMES) {
    assert.equal(parseProtocol(name.toUpperCase()), name);
    assert.equal(parseProtocol(name.toLowerCase()), name);
  }
  for (const name of ["", "x", "http1", "constructor"]) assert.equal(parseProtocol(name), "Unsupported");
});

test("protocols fall into HTTP, TCP or neither", () => {
  const http = PROTOCOL_NAMES.map(parseProtocol).filter(isHttp);
  const tcp = PROTOCOL_NAMES.map(parseProtocol).filter(isTcp);
  assert.deepEqual(http, ["HTTP", "HTTP2", "GRPC", "GRPC-Web", "HTTP_PROXY"]);
  assert.deepEqual(http.filter(isHttp2), ["HTTP2", "GRPC", "GRPC-Web"]);
  assert.deepEqual(tcp, ["HTTPS", "TLS", "TCP", "Mongo", "MySQL", "Redis"]);
  assert.deepEqual(tcp.filter(isTls), ["HTTPS", "TLS"]);
  assert.equal(isHttp("Unsupported") || isTcp("Unsupported") || isTcp("UDP"), false);
});
