import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { SecretSchema } from "#gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts";
import { createLogger } from "#lib/log/log.ts";
import { SECRET_TYPE } from "#protocol/messages/type-urls.ts";
import { startAds } from "../../../test/support/ads-fixture.ts";
import { selfSigned } from "../../../test/support/certificates.ts";
import { proxyOf } from "../../../test/support/mesh.ts";
import { nodeOf, XdsClient } from "../../../test/support/xds-client.ts";
import { NO_METRICS } from "../metrics/metrics.ts";
import { SYSTEM_CLOCK } from "../timing/clock.ts";

const DAY_MS = 86_400_000;
const source = (text: string) => ({ specifier: { case: "inlineBytes", value: Buffer.from(text) } }) as const;
const { certificate } = selfSigned("web.example.com");

function certificateSecret(name: string, text: string): Uint8Array {
  const type = { case: "tlsCertificate", value: { certificateChain: source(text) } } as const;
  return toBinary(SecretSchema, create(SecretSchema, { name, type }));
}

function rootsSecret(name: string, text: string): Uint8Array {
  const type = { case: "validationContext", value: { trustedCa: source(text) } } as const;
  return toBinary(SecretSchema, create(SecretSchema, { name, type }));
}

const SECRETS = {
  web: certificateSecret("web", certificate),
  "web-cacert": rootsSecret("web-cacert", certificate),
  odd: certificateSecret("odd", "no certificate"),
};

/** What is said, and how many are counted, when proxies ask for secrets so many days after the certificate was made. */
async function asked(days: number, names: readonly (keyof typeof SECRETS | "gone")[], proxies = 1) {
  const lines: string[] = [];
  let errors = 0;
  const clock = { ...SYSTEM_CLOCK, now: () => SYSTEM_CLOCK.now() + days * DAY_MS };
  const log = createLogger({ write: (line) => void lines.push(line), levels: { all: "warn" } });
  const count = (name: string, _: unknown, by = 1) => {
    if (name === "pilot_sds_certificate_errors_total") errors += by;
  };
  await using ads = await startAds(
    { all: { [SECRET_TYPE]: SECRETS } },
    { clock, log, metrics: { ...NO_METRICS, count } },
  );
  using clients = new DisposableStack();
  for (let i = 0; i < proxies; i++) {
    const client = clients.use(new XdsClient(ads.address, { node: nodeOf(proxyOf()) }));
    client.request(SECRET_TYPE, { subscribe: names });
    await client.take(SECRET_TYPE);
  }
  return { lines, errors };
}

test("secrets whose certificate is valid are sent without a word", async () => {
  assert.deepEqual(await asked(1, ["web", "web-cacert"]), { lines: [], errors: 0 });
});

for (const [what, days] of [
  ["has ended", 3],
  ["is not valid yet", -1],
] as const) {
  test(`a secret whose certificate ${what} is warned of and counted once, however many proxies ask for it`, async () => {
    const { lines, errors } = await asked(days, ["web", "web-cacert"], 3);
    assert.equal(errors, 2);
    assert.equal(lines.length, 2);
    assert.match(lines[0] ?? "", new RegExp(`\\twarn\\tads\\t.*${what}.*name=web `));
    assert.match(lines[1] ?? "", new RegExp(`\\twarn\\tads\\t.*${what}.*name=web-cacert`));
  });
}

test("a secret without a certificate that can be read is warned of and counted", async () => {
  const { lines, errors } = await asked(1, ["odd"]);
  assert.equal(errors, 1);
  assert.match(lines.join(""), /is no certificate in PEM.*name=odd/);
  assert.ok(!lines.join("").includes("no certificate\n"), "values are never quoted");
});

test("a secret that is not there is warned of and counted for each proxy that asks for it", async () => {
  const { lines, errors } = await asked(1, ["gone"], 2);
  assert.equal(errors, 2);
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? "", /\twarn\tads\t.*node=\S+ names=.?gone/);
});
