import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { NameTableSchema } from "#gen/istio/networking/nds/v1/nds_pb.ts";
import { nameTableJson } from "./dns/name-table-json.ts";
import { dnsAddress, listenAddresses } from "./plan-dns.ts";

const conf = (...servers: string[]) => ({ servers, searchDomains: [] });

test("listenAddresses() listens on loopback in each family of the name servers", () => {
  assert.deepEqual(listenAddresses("localhost:15053", conf("10.0.0.10")), { hosts: ["127.0.0.1"], port: 15053 });
  assert.deepEqual(listenAddresses("localhost:15053", conf("fd00::a")), { hosts: ["::1"], port: 15053 });
  assert.deepEqual(listenAddresses("localhost:15053", conf("10.0.0.10", "fe80::1%eth0")).hosts, ["127.0.0.1", "::1"]);
  assert.deepEqual(listenAddresses("localhost:15053", conf()).hosts, ["127.0.0.1"]);
});

test("listenAddresses() takes another address as it is, and refuses what is none", () => {
  assert.deepEqual(listenAddresses("10.1.1.1:53", conf("fd00::a")), { hosts: ["10.1.1.1"], port: 53 });
  assert.deepEqual(listenAddresses("[::1]:53", conf()), { hosts: ["::1"], port: 53 });
  for (const address of ["15053", ":65536", "localhost:99999"])
    assert.throws(() => listenAddresses(address, conf()), {
      message: `DNS_PROXY_ADDR must be host:port, not "${address}"`,
    });
});

test("listenAddresses() takes an empty host for all addresses", () => {
  assert.deepEqual(listenAddresses(":53", conf("10.0.0.10")), { hosts: [""], port: 53 });
});

test("dnsAddress() serves the whole machine on port 53 as root, and as others the usual address", () => {
  assert.deepEqual(dnsAddress(":53", true), { address: ":53", forMachine: true });
  assert.deepEqual(dnsAddress("", true), { address: "localhost:15053", forMachine: false });
  assert.deepEqual(dnsAddress("10.1.1.1:1053", false), { address: "10.1.1.1:1053", forMachine: false });
  const { address, forMachine, problem } = dnsAddress("127.0.0.1:53", false);
  assert.deepEqual([address, forMachine, problem?.includes("not running as root")], ["localhost:15053", false, true]);
});

test("nameTableJson() shows hosts as they came, and the short names that follow from them", () => {
  const table = {
    "a.default.svc.cluster.local": { ips: ["10.0.0.1"], registry: "Kubernetes", shortname: "a", namespace: "default" },
  };
  const bytes = toBinary(NameTableSchema, create(NameTableSchema, { table }));
  const shown = JSON.parse(
    nameTableJson(bytes, { namespace: "default", domain: "default.svc.cluster.local", searchDomains: [] }),
  );
  assert.deepEqual(shown.table["a.default.svc.cluster.local"], table["a.default.svc.cluster.local"]);
  assert.deepEqual(Object.keys(shown.table), [
    "a.",
    "a.default.",
    "a.default.svc.",
    "a.default.svc.cluster.local",
    "a.default.svc.cluster.local.",
  ]);
  assert.equal(nameTableJson(new Uint8Array(), { namespace: "", domain: "", searchDomains: [] }), "{}");
});
