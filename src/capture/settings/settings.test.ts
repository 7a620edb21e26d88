import assert from "node:assert/strict";
import { test } from "node:test";
import { type GivenOptions, readOptions } from "./options.ts";
import { parseCaptureSettings, type Surroundings } from "./settings.ts";

const AROUND: Surroundings = { ipv6: false, dnsServers: { v4: [], v6: [] }, proxyUid: "1337" };

function parse(given: GivenOptions, around = AROUND) {
  return parseCaptureSettings(readOptions(given, {}).options, around);
}

function problemOf(given: GivenOptions): string {
  const { value, problems } = parse(given);
  assert.equal(value, undefined);
  return problems.map(({ field, message }) => `${field} ${message}`).join("; ");
}

test("parseCaptureSettings() takes the proxy's account for user and group when none is given", () => {
  const { value } = parse({}, { ...AROUND, proxyUid: "998" });
  assert.deepEqual([value?.proxyUids, value?.proxyGids], [["998"], ["998"]]);
  assert.deepEqual(parse({ proxyUid: "3,4" }).value?.proxyGids, ["3", "4"]);
});

test("parseCaptureSettings() leaves out empty parts of lists and reads ranges of ports", () => {
  assert.deepEqual(parse({ inboundPortsExcluded: "22,, 80:90," }).value?.inboundPortsExcluded, [
    { from: 22, to: 22 },
    { from: 80, to: 90 },
  ]);
});

test("parseCaptureSettings() splits ranges by family and spells them canonically", () => {
  const { value } = parse({ outboundRanges: "10.1.2.3/8,2001:DB8:0::/32" });
  assert.deepEqual(value?.outboundRanges, { v4: ["10.1.2.3/8"], v6: ["2001:db8::/32"] });
  assert.equal(value?.capturesLoopback, false);
});

test("parseCaptureSettings() notices a captured loopback range", () => {
  assert.equal(parse({ outboundRanges: "10.0.0.0/8,127.0.0.5/32" }).value?.capturesLoopback, true);
  assert.equal(parse({ outboundRanges: "::1/128" }).value?.capturesLoopback, true);
});

test("parseCaptureSettings() captures DNS only where there is a server to capture", () => {
  const servers = { ...AROUND, dnsServers: { v4: ["10.0.0.53"], v6: [] } };
  assert.equal(parse({ redirectDns: true }).value?.dns, "off");
  assert.equal(parse({ redirectDns: true }, servers).value?.dns, "servers");
  assert.equal(parse({ redirectDns: true, captureAllDns: true }).value?.dns, "all");
  assert.equal(parse({ captureAllDns: true }, servers).value?.dns, "off");
});

test("parseCaptureSettings() reports every problem at once", () => {
  assert.equal(
    problemOf({ proxyPort: "0", mode: "NONE" }),
    '--envoy-port must be a number from 1 to 65535, not "0"; ' +
      '--istio-inbound-interception-mode (ISTIO_INBOUND_INTERCEPTION_MODE) must be REDIRECT or TPROXY, not "NONE"',
  );
});

test("parseCaptureSettings() takes exclusions from all inbound ports, and from a range of outbound ports", () => {
  assert.ok(parse({ inboundPorts: "*", inboundPortsExcluded: "80" }).value);
  assert.ok(parse({ outboundPorts: "80:90", outboundPortsExcluded: "85" }).value);
});

test("parseCaptureSettings() follows ENABLE_INBOUND_IPV6 over what the addresses say", () => {
  assert.equal(parse({ inboundIpv6: "false" }, { ...AROUND, ipv6: true }).value?.ipv6, false);
  assert.equal(parse({ inboundIpv6: "true" }, { ...AROUND, ipv6: false }).value?.ipv6, true);
  assert.equal(parse({}, { ...AROUND, ipv6: true }).value?.ipv6, true);
});

const BAD: readonly (readonly [GivenOptions, RegExp])[] = [
  [{ proxyPort: "" }, /^--envoy-port must be a number/],
  [{ inboundPort: "70000" }, /^--inbound-capture-port \(INBOUND_CAPTURE_PORT\) must be a number/],
  [{ tunnelPort: "15008 -j ACCEPT" }, /^--inbound-tunnel-port \(INBOUND_TUNNEL_PORT\) must be a number/],
  [{ tproxyMark: "mark" }, /^--istio-inbound-tproxy-mark \(ISTIO_INBOUND_TPROXY_MARK\) must be a number/],
  [{ inboundPorts: "80,http" }, /^--istio-inbound-ports \(ISTIO_INBOUND_PORTS\) must list ports .* not "http"$/],
  [{ inboundPorts: "80,*" }, /not "\*"$/],
  [{ outboundPorts: "9000:8000" }, /not "9000:8000"$/],
  [{ outboundPortsExcluded: "1:2:3" }, /not "1:2:3"$/],
  [{ inboundPortsExcluded: "65536" }, /not "65536"$/],
  [{ proxyUid: "1337\n-A OUTPUT" }, /^--proxy-uid \(PROXY_UID\) must list ids or account names/],
  [{ proxyGid: "-1" }, /^--proxy-gid \(PROXY_GID\) must list ids/],
  [{ ownerGroups: "a b" }, /^ISTIO_OUTBOUND_OWNER_GROUPS must list ids/],
  [
    { ownerGroups: Array.from({ length: 65 }, (_, id) => id).join() },
    /must not list more than 64 groups, and lists 65$/,
  ],
  [
    { outboundRanges: "10.0.0.0" },
    /^--istio-service-cidr \(ISTIO_SERVICE_CIDR\) must list IP ranges .* not "10.0.0.0"$/,
  ],
  [{ outboundRanges: "10.0.0.0/33" }, /not "10.0.0.0\/33"$/],
  [{ outboundRanges: "0x0a.0.0.0/8" }, /not "0x0a/],
  [
    { outboundRangesExcluded: "*" },
    /^--istio-service-exclude-cidr \(ISTIO_SERVICE_EXCLUDE_CIDR\) must list IP ranges .* not "\*"$/,
  ],
  [{ outboundRanges: "fe80::1%eth0/64" }, /not "fe80::1%eth0\/64"$/],
  [
    { excludedInterfaces: "eth0;reboot" },
    /^--istio-exclude-interfaces \(ISTIO_EXCLUDE_INTERFACES\) must list network interfaces/,
  ],
  [{ virtualInterfaces: "an-interface-with-a-long-name" }, /^--kube-virt-interfaces \(KUBE_VIRT_INTERFACES\)/],
  [{ forcedBinary: "bpf" }, /^--force-iptables-binary \(FORCE_IPTABLES_BINARY\) must be legacy or nft, not "bpf"$/],
  [
    { iptablesVersion: "1.8; reboot" },
    /^--iptables-version \(IPTABLES_VERSION\) must be a version .* not "1.8; reboot"$/,
  ],
  [{ probePort: "0" }, /^--iptables-probe-port \(IPTABLES_PROBE_PORT\) must be a number/],
  [{ probeTimeout: "5" }, /^--probe-timeout \(PROBE_TIMEOUT\) must be a time such as "5s", not "5"$/],
  [{ probeTimeout: "-1s" }, /not "-1s"$/],
  [{ inboundIpv6: "maybe" }, /^ENABLE_INBOUND_IPV6 must be true or false, not "maybe"$/],
  [
    { inboundPorts: "80,8080", inboundPortsExcluded: "22,8080" },
    /^--istio-inbound-ports \(ISTIO_INBOUND_PORTS\) must not list what --istio-local-exclude-ports .* excludes, and both list "8080"$/,
  ],
  [
    { outboundPorts: "80:90", outboundPortsExcluded: "80:90" },
    /^--istio-outbound-ports .* must not list what --istio-local-outbound-ports-exclude .* both list "80:90"$/,
  ],
  [{ loopbackCidr: "10.0.0.1/32" }, /^ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR must be an IPv4 loopback range/],
  [{ loopbackCidr: "127.0.0.1/4" }, /from \/8 to \/32/],
  [{ loopbackCidr: "::1/128" }, /must be an IPv4 loopback range/],
];

for (const [given, message] of BAD) {
  test(`parseCaptureSettings() refuses ${JSON.stringify(given).slice(0, 60)}`, () => {
    assert.match(problemOf(given), message);
  });
}
