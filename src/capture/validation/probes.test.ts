import assert from "node:assert/strict";
import { test } from "node:test";
import { type GivenOptions, readOptions } from "../settings/options.ts";
import { parseCaptureSettings } from "../settings/settings.ts";
import { inboundProbe, outboundProbe, type ProbeInput } from "./probes.ts";

const ROOT = { uid: 0, gid: 0 };
const PROXY = { uid: 1337, gid: 1337 };
const NOBODY = { uid: 65534, gid: 65534 };

function inputOf(given: GivenOptions, part: Partial<ProbeInput> = {}): ProbeInput {
  const around = { ipv6: true, dnsServers: { v4: [], v6: [] }, proxyUid: "1337" };
  const { value: settings } = parseCaptureSettings(readOptions({ outboundRanges: "*", ...given }, {}).options, around);
  assert.ok(settings);
  const place = { family: "v4", interface: "eth0", address: "10.0.0.7" } as const;
  return { settings, dialect: "iptables", port: 15002, current: ROOT, ...place, ...part };
}

test("inboundProbe() calls another loopback address as the proxy", () => {
  assert.deepEqual(inboundProbe(inputOf({})), {
    direction: "inbound",
    family: "v4",
    caller: PROXY,
    from: "127.0.0.1",
    to: { address: "127.0.0.6", port: 15002 },
    envoy: { address: "127.0.0.1", port: 15006 },
  });
  assert.deepEqual(inboundProbe(inputOf({}, { family: "v6" }))?.to, { address: "::6", port: 15002 });
});

test("inboundProbe() calls the pod's own address where all of 127.0.0.0/8 means the application", () => {
  const wide: GivenOptions = { loopbackCidr: "127.0.0.0/8" };
  assert.deepEqual(inboundProbe(inputOf(wide))?.to, { address: "10.0.0.7", port: 15002 });
  assert.equal(inboundProbe(inputOf(wide, { address: undefined })), undefined);
});

test("outboundProbe() calls as whoever asks, unless that is the proxy", () => {
  assert.deepEqual(outboundProbe(inputOf({})), {
    direction: "outbound",
    family: "v4",
    caller: ROOT,
    from: undefined,
    to: { address: "192.0.2.1", port: 15002 },
    envoy: { address: "127.0.0.1", port: 15001 },
  });
  assert.deepEqual(outboundProbe(inputOf({}, { current: PROXY }))?.caller, NOBODY);
  assert.deepEqual(outboundProbe(inputOf({ ownerGroups: "7,8" }))?.caller, { uid: 65534, gid: 7 });
});

test("outboundProbe() calls what is captured", () => {
  const to = (given: GivenOptions) => outboundProbe(inputOf(given))?.to;
  assert.deepEqual(to({ outboundRanges: "10.0.0.0/8" }), { address: "10.0.0.0", port: 15002 });
  assert.deepEqual(to({ outboundRanges: "", outboundPorts: "443" }), { address: "192.0.2.1", port: 443 });
  assert.equal(to({ outboundRanges: "" }), undefined);
  assert.equal(to({ excludedInterfaces: "eth0" }), undefined);
});
