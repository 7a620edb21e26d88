import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import type { GivenOptions } from "../settings/options.ts";
import type { PacketFlags } from "./packet-flags.ts";
import { runExplain } from "./run-explain.ts";

const GIVEN: GivenOptions = { proxyUid: "1337", inboundPorts: "*", inboundPortsExcluded: "15090", outboundRanges: "*" };

interface Asked extends Omit<PacketFlags, "destination"> {
  readonly given?: GivenOptions;
  readonly output?: string;
}

function explain(what: string, { given = {}, output, ...flags }: Asked = {}): Promise<string> {
  const env = { PATH: process.env.PATH };
  return runExplain({ given: { ...GIVEN, ...given }, env, log: SILENT, what, output, flags });
}

test("runExplain() walks a packet and says where it ends, by which rules, and why", async () => {
  assert.equal(
    await explain("203.0.113.5:443", { uid: "1000", gid: "1000", outInterface: "eth0" }),
    `TCP to 203.0.113.5:443, outbound by eth0, sent by user 1000, group 1000

  1. nat OUTPUT          -j ISTIO_OUTPUT                      # every outbound packet is looked at
  2. nat ISTIO_OUTPUT    -j ISTIO_REDIRECT                    # all other connections go to Envoy
  3. nat ISTIO_REDIRECT  -p tcp -j REDIRECT --to-ports 15001  # outbound connections enter Envoy here

It ends at Envoy's outbound port 15001, which can see that it was sent to 203.0.113.5:443: all other connections go to Envoy.
`,
  );
});

test("runExplain() has a sentence for every end", async () => {
  const last = async (what: string, asked: Asked) => (await explain(what, asked)).match(/^It .*$/m)?.[0];
  const inbound = { direction: "inbound", inInterface: "eth0" };
  const ends = {
    proxy: await last("203.0.113.5:443", { uid: "1337" }),
    local: await last("203.0.113.5:15090", inbound),
    tproxy: await last("203.0.113.5:80", { ...inbound, given: { mode: "TPROXY" } }),
    dns: await last("203.0.113.5:53", { proto: "udp", given: { redirectDns: true, captureAllDns: true } }),
    dropped: await last("203.0.113.5:80", { ...inbound, ctstate: "INVALID", given: { dropInvalid: true } }),
    past: await last("203.0.113.5:80", { inInterface: "tap0", proto: "udp", given: { virtualInterfaces: "tap0" } }),
  };
  assert.deepEqual(ends, {
    proxy: "It leaves the pod by eth0 to 203.0.113.5:443, untouched: whatever the proxy sends goes out.",
    local: "It ends at port 15090 of this pod, untouched: excluded inbound port.",
    tproxy: "It ends at Envoy's inbound port 15006, with its addresses unchanged: a new connection goes to Envoy.",
    dns: "It ends at the agent's DNS port 15053: the agent answers this query.",
    dropped: "It is dropped: a packet out of its window would reset the connection.",
    past: "It is not for this pod and goes on to 203.0.113.5:80 by the pod's routes: traffic of virtual machines is not inbound.",
  });
});

test("runExplain() says what the nat table does not see, and what no rule is about", async () => {
  const later = await explain("203.0.113.5:443", { ctstate: "ESTABLISHED" });
  assert.match(later, /no rule applies[\s\S]*The nat table is asked about the first packet of a connection only/);
});

test("runExplain() speaks nftables where that is used", async () => {
  const text = await explain("203.0.113.5:443", { given: { nativeNftables: true } });
  assert.match(text, /2\. nat ISTIO_OUTPUT +counter jump istio-redirect /);
});

test("runExplain() gives a packet as JSON", async () => {
  const walk = JSON.parse(await explain("203.0.113.5:443", { output: "json" }));
  assert.equal(walk.packet.destination, "203.0.113.5");
  assert.deepEqual(walk.end, { kind: "captured", port: 15001, by: "redirect", label: "Envoy's outbound port 15001" });
  assert.equal(walk.rules[2].rule, "-p tcp -j REDIRECT --to-ports 15001");
});

test("runExplain() gives the plan in every format, by either flag", async () => {
  assert.match(await explain(""), /^IPv4 by iptables, mode REDIRECT\n/);
  assert.equal(JSON.parse(await explain("json")).families[0].groups[0].flows[0].end.kind, "pod");
  const mermaid = await explain("mermaid");
  assert.match(mermaid, /^flowchart LR\n {2}subgraph v4_inbound\["IPv4: Inbound: what others send to the pod"\]\n/);
  assert.match(mermaid, /v4_inbound_w0 -- "calls port 15090<br\/><i>excluded inbound port<\/i>" --> v4_inbound_e0\n/);
  assert.equal(await explain("", { output: "mermaid" }), mermaid);
  const svg = await explain("svg");
  assert.match(svg, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*prefers-color-scheme: dark[\s\S]*<\/svg>\n$/);
  assert.match(svg, /<text class="what" [^>]*>calls any other port<\/text>/);
  assert.match(svg, /marker-end="url\(#to-envoy-inbound\)"/);
});

test("runExplain() refuses what it cannot explain, and wrong settings", async () => {
  const refused = (what: string, asked: Asked, message: RegExp) =>
    assert.rejects(explain(what, asked), { code: "CAPTURE_OPTIONS", message });
  await refused("somewhere", {}, /^Cannot explain: --explain must be an address with a port .* not "somewhere"$/);
  await refused("203.0.113.5:443", { output: "svg" }, /^Cannot explain: --output must be text or json, not "svg"$/);
  await refused("", { output: "png" }, /--output must be text or json or mermaid or svg, not "png"$/);
  await refused("", { output: "toString" }, /--output must be text/);
  await refused("", { uid: "1", inInterface: "a" }, /--uid, --in-interface is about one packet/);
  await refused("", { given: { proxyPort: "none" } }, /^Cannot set up traffic capture: --envoy-port/);
});
