import assert from "node:assert/strict";
import { test } from "node:test";
import { autoRanges } from "#convert/services/addresses.ts";
import { DEFAULT_FEATURES, type Features } from "#model/features.ts";
import { objectsOf } from "../../test/support/mesh.ts";
import { type EntryObject, missingAddresses } from "./allocated-addresses.ts";

function entry(name: string, more: { spec?: object; status?: object; labels?: object } = {}): EntryObject {
  const ports = [{ name: "http", number: 80, protocol: "HTTP" }];
  const [object] = objectsOf(
    JSON.stringify({
      apiVersion: "networking.istio.io/v1",
      kind: "ServiceEntry",
      metadata: { name, labels: more.labels ?? {} },
      spec: { hosts: [`${name}.com`], ports, resolution: "DNS", ...more.spec },
      status: more.status,
    }),
  );
  return object as EntryObject;
}

function shown(...entries: EntryObject[]): readonly string[] {
  return shownOf(DEFAULT_FEATURES, entries);
}

function shownOf(ranges: Pick<Features, "autoRange4" | "autoRange6">, entries: EntryObject[]): readonly string[] {
  return [...missingAddresses(entries, autoRanges(ranges))].flatMap(([{ metadata }, addresses]) =>
    addresses.map(({ host, value }) => `${metadata.name} ${host} ${value}`),
  );
}

const allocated = (...pairs: [host: string, value: string][]) => ({
  addresses: pairs.map(([host, value]) => ({ host, value })),
});

test("hosts without address get the next free one of each family", () => {
  assert.deepEqual(shown(entry("b"), entry("a", { spec: { hosts: ["x.com", "y.com", "x.com"] } })), [
    "a x.com 240.240.0.1",
    "a x.com 2001:2::1",
    "a y.com 240.240.0.2",
    "a y.com 2001:2::2",
    "b b.com 240.240.0.3",
    "b b.com 2001:2::3",
  ]);
});

test("addresses come from the ranges that were asked for, as long as they last", () => {
  const ranges = { autoRange4: "10.9.8.252/24", autoRange6: "fd00:1::ff00/120" };
  const taken = entry("t", { spec: { hosts: ["t.com"], addresses: ["10.9.8.253"] } });
  assert.deepEqual(shownOf(ranges, [taken, entry("a", { spec: { hosts: ["a.com", "b.com", "c.com"] } })]), [
    "a a.com 10.9.8.254",
    "a a.com fd00:1::ff01",
    "a b.com 10.9.8.255",
    "a b.com fd00:1::ff02",
    "a c.com fd00:1::ff03",
  ]);
});

test("addresses that are there stay, and nobody gets them again", () => {
  const known = entry("a", { status: allocated(["a.com", "240.240.0.1"], ["a.com", "2001:2::1"]) });
  const taken = entry("t", { spec: { addresses: ["240.240.0.2"] } });
  assert.deepEqual(shown(known, taken, entry("b")), ["b b.com 240.240.0.3", "b b.com 2001:2::2"]);
  const more = entry("a", { spec: { hosts: ["a.com", "c.com"] }, status: allocated(["a.com", "240.240.0.9"]) });
  assert.deepEqual(shown(more), ["a a.com 240.240.0.9", "a c.com 240.240.0.1", "a c.com 2001:2::1"]);
});

test("a host has again what it was given, and others get that when there is no other left", () => {
  const ranges = autoRanges({ autoRange4: "10.9.8.252/24", autoRange6: "fd00:1::ff00/120" });
  const given = new Map([
    ["ServiceEntry/default/gone gone.com", ["10.9.8.253"]],
    ["ServiceEntry/default/a b.com", ["10.9.8.254", "fd00:1::ff01"]],
    ["ServiceEntry/default/a late.com", ["10.9.8.253", "fd00:1::ff09"]],
  ]);
  const entries = [entry("a", { spec: { hosts: ["a.com", "b.com", "c.com", "late.com"] } })];
  const addresses = [...missingAddresses(entries, ranges, given).values()].flat();
  const words = addresses.map(({ host, value }) => `${host} ${value}`);
  assert.deepEqual(words.slice(0, 4), [
    "a.com 10.9.8.255",
    "a.com fd00:1::ff02",
    "b.com 10.9.8.254",
    "b.com fd00:1::ff01",
  ]);
  assert.deepEqual(words.slice(4), ["c.com 10.9.8.253", "c.com fd00:1::ff03", "late.com fd00:1::ff09"]);
});

test("an address that two hosts have stays the older one's, and that of a user his", () => {
  const status = (host: string) => allocated([host, "240.240.0.1"], [host, "2001:2::1"]);
  const [older, younger] = [entry("a", { status: status("a.com") }), entry("b", { status: status("b.com") })];
  assert.deepEqual(shown(younger, older), ["b b.com 240.240.0.2", "b b.com 2001:2::2"]);
  const users = entry("z", { spec: { addresses: ["240.240.0.1"] } });
  assert.deepEqual(shown(older, users), ["a a.com 240.240.0.2", "a a.com 2001:2::2"]);
});

test("an entry with wildcards alone loses the addresses that it had", () => {
  const spec = { hosts: ["*.a.com"], resolution: "STATIC", endpoints: [{ address: "10.0.0.1" }] };
  const known = { spec, status: allocated(["x.a.com", "240.240.0.1"]) };
  const missing = (more: object) => missingAddresses([entry("a", { ...known, ...more })], autoRanges(DEFAULT_FEATURES));
  assert.deepEqual([...missing({}).values()], [[]]);
  assert.equal(missing({ labels: { "networking.istio.io/enable-autoallocate-ip": "false" } }).size, 0);
});

test("who has addresses, wants none or cannot use one gets none", () => {
  const labels = { "networking.istio.io/enable-autoallocate-ip": "false" };
  assert.deepEqual(shown(entry("a", { spec: { addresses: ["10.0.0.1"] } }), entry("b", { labels })), []);
  assert.deepEqual(shown(entry("c", { spec: { resolution: "NONE" } })), []);
  const endpoints = [{ address: "10.0.0.1" }];
  assert.deepEqual(shown(entry("d", { spec: { hosts: ["*.d.com"], resolution: "STATIC", endpoints } })), []);
});
