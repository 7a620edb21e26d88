import assert from "node:assert/strict";
import { test } from "node:test";
import { parseResolvConf } from "./resolv-conf.ts";

test("parseResolvConf() reads servers and the last search line, and skips comments and junk", () => {
  const text =
    "# comment\nnameserver 10.96.0.10\nnameserver fe80::1%eth0 ; note\nnameserver not-an-ip\nsearch a b\ndomain c\nsearch x y\noptions ndots:5\n";
  assert.deepEqual(parseResolvConf(text), { servers: ["10.96.0.10", "fe80::1%eth0"], searchDomains: ["x", "y"] });
  assert.deepEqual(parseResolvConf(""), { servers: [], searchDomains: [] });
});
