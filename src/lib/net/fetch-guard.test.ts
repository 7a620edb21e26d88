import assert from "node:assert/strict";
import { test } from "node:test";
import { FetchGuard, type FetchGuardOptions } from "./fetch-guard.ts";

const REFUSED = /^Error: (\S+) is (a local|a private|in a blocked)/;

function guardFor(start: string, more: Partial<FetchGuardOptions> = {}): FetchGuard {
  return new FetchGuard(new URL(start), {
    allowLocal: false,
    allowedRanges: [],
    blockedRanges: [],
    clusterDomain: "cluster.local",
    refusal: (host, reason) => new Error(`${host} is ${reason}`),
    ...more,
  });
}

/** What a connection to a URL gets from the guard where names lead to these addresses. */
function connect(
  start: string,
  url: string,
  { addresses, ...more }: Partial<FetchGuardOptions> & { addresses: string[] },
) {
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  const guard = guardFor(start, { ...more, lookup: (_, __, done) => done(null, found) });
  const { hostname } = new URL(url);
  return new Promise((resolve, reject) => {
    guard.check(new URL(url));
    guard.lookupFor(new URL(url))(hostname, { all: true }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

test("a FetchGuard refuses addresses that are not public, however a URL writes them", () => {
  for (const host of [
    "127.0.0.1",
    "2130706433",
    "0x7f.1",
    "0.0.0.0",
    "localhost",
    "x.localhost.",
    "metadata.google.internal",
    "169.254.169.254",
    "10.0.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "224.0.0.1",
    "[::]",
    "[::1]",
    "[::ffff:10.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::8.8.8.8]",
    "[64:ff9b:1::1]",
    "[2002:a9fe:a9fe::]",
    "[2001:0:1::1]",
    "[fd00:ec2::254]",
    "[fc00::1]",
    "[fe80::1]",
  ]) {
    const url = new URL(`http://${host}/`);
    assert.throws(() => guardFor(url.href).check(url), REFUSED, host);
    guardFor(url.href, { allowLocal: true }).check(url);
    guardFor(url.href, { isTrusted: ({ host: trusted }) => trusted === url.host }).check(url);
  }
  for (const host of ["8.8.8.8", "[2606:4700::1111]", "example.com", "[::ffff:8.8.8.8]"])
    guardFor(`http://${host}/`).check(new URL(`http://${host}/`));
});

test("a FetchGuard allows private ranges that are listed, but no metadata server in them", () => {
  const more = { allowedRanges: ["10.0.0.0/8", "100.64.0.0/10", "64:ff9b::/96"] };
  const check = (url: string) => guardFor(url, more).check(new URL(url));
  for (const host of ["10.1.2.3", "100.64.0.1", "[64:ff9b::8.8.8.8]", "[::ffff:10.1.2.3]"]) check(`http://${host}/`);
  for (const host of ["192.168.0.1", "100.100.100.200", "127.0.0.1", "[64:ff9b::169.254.169.254]"])
    assert.throws(() => check(`http://${host}/`), REFUSED, host);
});

test("a FetchGuard refuses blocked ranges whatever else is allowed, also inside of other addresses", () => {
  const more = { allowLocal: true, blockedRanges: ["10.0.0.0/8", "8.8.8.0/24"] };
  for (const host of ["10.0.0.1", "8.8.8.8", "[::ffff:10.0.0.1]", "[64:ff9b::10.0.0.1]", "[2002:808:808::]"])
    assert.throws(() => guardFor(`http://${host}/`, more).check(new URL(`http://${host}/`)), /blocked range/, host);
});

test("a FetchGuard checks the addresses that a connection uses, not those of an earlier look-up", async () => {
  assert.deepEqual(await connect("http://a.example/", "http://a.example/", { addresses: ["8.8.8.8"] }), [
    { address: "8.8.8.8", family: 4 },
  ]);
  for (const addresses of [["127.0.0.1"], ["10.0.0.1"], ["8.8.8.8", "169.254.169.254"], ["::8.8.8.8"]])
    await assert.rejects(connect("http://a.example/", "http://a.example/", { addresses }), REFUSED);
});

test("a FetchGuard lets configuration name services of the cluster, and no server outside redirect to them", async () => {
  const addresses = ["10.96.0.7"];
  const service = "http://keycloak.identity.svc.cluster.local:8080/certs";
  await connect(service, service, { addresses });
  await connect("http://keycloak.identity.svc/certs", "http://keycloak.identity.svc/certs", { addresses });
  await assert.rejects(connect("http://a.example/", service, { addresses }), REFUSED);
  await assert.rejects(connect(service, "http://a.example/", { addresses }), REFUSED);
  const foreign = "http://keycloak.svc.cluster.local.example/certs";
  await assert.rejects(connect(foreign, foreign, { addresses }), REFUSED);
  await assert.rejects(connect(service, service, { addresses: ["169.254.169.254"] }), REFUSED);
});
