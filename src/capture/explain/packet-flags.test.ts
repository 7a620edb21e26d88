import assert from "node:assert/strict";
import { test } from "node:test";
import { type PacketFlags, parsePacket } from "./packet-flags.ts";

const FACTS = {
  accounts: { users: new Map([["istio-proxy", "1337"]]), groups: new Map([["mesh", "7"]]) },
  addresses: ["10.0.0.7", "fd00::7"],
  virtualInterfaces: ["tap+"],
};

function parsed(flags: PacketFlags) {
  const { value, problems } = parsePacket(flags, FACTS);
  assert.ok(value, JSON.stringify(problems));
  return value;
}

function refused(flags: PacketFlags): string {
  const { value, problems } = parsePacket(flags, FACTS);
  assert.equal(value, undefined);
  return problems.map(({ field, message }) => `${field} ${message}`).join("; ");
}

test("parsePacket() assumes an application that calls out, and says so", () => {
  const { packet, assumed } = parsed({ destination: "10.0.0.5:443" });
  assert.deepEqual(packet, {
    family: "v4",
    direction: "outbound",
    protocol: "tcp",
    source: undefined,
    sourcePort: undefined,
    destination: "10.0.0.5",
    port: 443,
    toSelf: false,
    interface: "eth0",
    owner: { uid: 1000, gid: 1000 },
    state: "NEW",
  });
  assert.deepEqual(assumed, ["user 1000 (--uid)", "group 1000 (--gid)", "interface eth0 (--out-interface)"]);
});

test("parsePacket() takes everything that rules look at", () => {
  const { packet, assumed } = parsed({
    destination: "[FD00::0005]:53",
    uid: "istio-proxy",
    gid: "mesh",
    proto: "udp",
    source: "[fd00::9]:15053",
    outInterface: "net1",
    ctstate: "established",
  });
  assert.equal(packet.destination, "fd00::5");
  assert.deepEqual(packet.owner, { uid: 1337, gid: 7 });
  assert.deepEqual([packet.source, packet.sourcePort], ["fd00::9", 15053]);
  assert.deepEqual([packet.interface, packet.protocol, packet.state], ["net1", "udp", "ESTABLISHED"]);
  assert.deepEqual(assumed, []);
});

test("parsePacket() knows what the pod sends to itself", () => {
  const own = parsed({ destination: "10.0.0.7:80" }).packet;
  assert.deepEqual([own.toSelf, own.interface, own.source], [true, "lo", "10.0.0.7"]);
  const loopback = parsed({ destination: "127.0.0.6:80" }).packet;
  assert.deepEqual([loopback.toSelf, loopback.interface, loopback.source], [true, "lo", "127.0.0.1"]);
  assert.equal(parsed({ destination: "10.0.0.9:80", outInterface: "lo" }).packet.toSelf, true);
});

test("parsePacket() takes an interface to come in by for inbound", () => {
  const { packet } = parsed({ destination: "10.0.0.5:80", inInterface: "net1" });
  assert.deepEqual([packet.direction, packet.toSelf, packet.owner], ["inbound", true, undefined]);
  assert.equal(parsed({ destination: "10.0.0.5:80", inInterface: "tap0" }).packet.toSelf, false);
  assert.equal(parsed({ destination: "10.0.0.7:80", inInterface: "tap0" }).packet.toSelf, true);
});

test("parsePacket() sends an IPv4 address inside IPv6 as IPv4", () => {
  assert.equal(parsed({ destination: "[::ffff:10.0.0.5]:80" }).packet.destination, "10.0.0.5");
});

test("parsePacket() refuses destinations that are none", () => {
  const wrong = ["", "10.0.0.5", "10.0.0:80", "reviews:9080", "10.0.0.5:0", "10.0.0.5:65536", "10.0.0.5:http"];
  for (const destination of [...wrong, "fd00::5:443", "[fd00::5]", "[fe80::1%eth0]:80", "0.0.0.0:80", "[10.0.0.5:80"]) {
    assert.match(refused({ destination }), /^--explain must be an address with a port/, destination);
  }
  assert.match(refused({ destination: "127.0.0.1:80", direction: "inbound" }), /^--explain must not be a loopback/);
});

test("parsePacket() names every flag that is wrong", () => {
  const destination = "10.0.0.5:443";
  assert.equal(
    refused({ destination, uid: "nosuch", gid: "4294967296", proto: "icmp", ctstate: "OLD", source: "x" }),
    [
      '--proto must be tcp or udp, not "icmp"',
      '--ctstate must be NEW or ESTABLISHED or RELATED or INVALID, not "OLD"',
      '--uid must be a number or the name of a known user, not "nosuch"',
      '--gid must be a number or the name of a known group, not "4294967296"',
      '--source must be an address, with or without a port, not "x"',
    ].join("; "),
  );
  assert.match(refused({ destination, direction: "up" }), /^--direction must be outbound or inbound, not "up"$/);
  assert.match(refused({ destination, direction: "inbound", uid: "0" }), /^--uid is about outbound packets/);
  assert.match(refused({ destination, inInterface: "a", outInterface: "b" }), /^--out-interface is about outbound/);
  assert.match(refused({ destination, direction: "outbound", inInterface: "a" }), /^--in-interface is about inbound/);
  assert.match(refused({ destination, outInterface: "no such one" }), /^--out-interface must be the name/);
  assert.match(refused({ destination, source: "fd00::1" }), /^--source must be of the same family/);
});
