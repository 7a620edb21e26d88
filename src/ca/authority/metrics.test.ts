import assert from "node:assert/strict";
import { test } from "node:test";
import { selfSignedCa } from "../keys/self-signed.ts";
import { signingBundle } from "../keys/signing-bundle.ts";
import { Authority } from "./authority.ts";
import { caGauges } from "./metrics.ts";

const DAY = 86_400_000;
const NOW = Math.floor(Date.now() / 1000) * 1000;

test("caGauges() tells when root and chain end", async () => {
  const files = await selfSignedCa({ trustDomain: "a", lifetimeMs: DAY, keyKind: "P-256", now: NOW });
  const gauges = (chainPem: string) => {
    const bundle = signingBundle({ ...files, chainPem }, NOW);
    return caGauges(new Authority(bundle, { defaultTtlMs: DAY, maxTtlMs: DAY, now: () => NOW }), NOW);
  };
  const end = (NOW + DAY) / 1000;
  assert.deepEqual(gauges(""), {
    citadel_server_root_cert_expiry_timestamp: [{ value: end }],
    citadel_server_root_cert_expiry_seconds: [{ value: DAY / 1000 }],
    citadel_server_cert_chain_expiry_timestamp: [],
    citadel_server_cert_chain_expiry_seconds: [],
  });
  assert.deepEqual(gauges(files.rootPem).citadel_server_cert_chain_expiry_timestamp, [{ value: end }]);
});
