import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type GivenOptions, readOptions } from "../settings/options.ts";
import { parseCaptureSettings } from "../settings/settings.ts";
import { explainPlan, type Flow, type Plan } from "./plan.ts";
import { formatPlan } from "./print/plan-text.ts";
import { ruleBook } from "./rule-book.ts";

const STANDARD: GivenOptions = { inboundPorts: "*", inboundPortsExcluded: "15090,15021,15020", outboundRanges: "*" };
const AROUND = { ipv6: false, dnsServers: { v4: ["10.96.0.10"], v6: ["fd00::a"] }, proxyUid: "1337" };

function settingsOf(given: GivenOptions, ipv6 = false) {
  const { value, problems } = parseCaptureSettings(readOptions({ ...STANDARD, ...given }, {}).options, {
    ...AROUND,
    ipv6,
  });
  assert.ok(value, JSON.stringify(problems));
  return value;
}

function planOf(given: GivenOptions): Plan {
  return explainPlan(settingsOf(given), "iptables");
}

/** Sentences of one group, with where each leads. */
function told(plan: Plan, group: string): readonly string[] {
  const flows = plan.families[0]?.groups.find((one) => one.group === group)?.flows ?? [];
  return flows.map(
    ({ who, verb, objects, end, why }: Flow) => `${who} ${verb} ${objects.join("|")} -> ${end.kind}: ${why}`,
  );
}

test("explainPlan() tells what happens to inbound traffic, alike things together", () => {
  assert.deepEqual(told(planOf({}), "inbound"), [
    "a peer calls port 15090|port 15021|port 15020 -> pod: excluded inbound port",
    "a peer calls tunnel port 15008 -> pod: Envoy itself listens for tunnels",
    "a peer calls any other port -> envoy-inbound: captured inbound port",
    "a peer sends UDP -> pod: no rule is about it",
  ]);
});

test("explainPlan() has a line for everything that settings list", () => {
  const plan = planOf({
    inboundPorts: "8000:8080",
    inboundPortsExcluded: "",
    outboundRanges: "10.0.0.0/8",
    outboundRangesExcluded: "10.9.0.0/16",
    outboundPorts: "9090",
    outboundPortsExcluded: "25",
    excludedInterfaces: "net+",
    virtualInterfaces: "tap0",
    ownerGroupsExcluded: "7",
    dropInvalid: true,
  });
  assert.deepEqual(told(plan, "inbound"), [
    "a peer calls ports 8000 to 8080 -> envoy-inbound: captured inbound port",
    "a peer calls tunnel port 15008 -> pod: Envoy itself listens for tunnels",
    "a peer calls any other port -> pod: no rule is about it",
    "a peer sends UDP -> pod: no rule is about it",
    "anybody calls by interface net+ -> pod: excluded interface",
    "a machine behind tap0 calls any address -> out: traffic of virtual machines is not inbound",
    "anybody sends a packet of no known connection -> dropped: a packet out of its window would reset the connection",
  ]);
  assert.deepEqual(told(plan, "outbound"), [
    "the application calls port 25 -> out: excluded outbound port",
    "the application calls 10.9.0.0/16 -> out: excluded outbound range",
    "the application calls port 9090 -> envoy-outbound: captured outbound port",
    "the application calls 10.0.0.0/8 -> envoy-outbound: captured outbound range",
    "the application calls any other address -> out: no rule is about it",
    "the application sends UDP -> out: no rule is about it",
    "the application calls by interface net+ -> out: excluded interface",
    "a process of group 7 calls any other address -> out: excluded group",
  ]);
});

test("explainPlan() tells whom DNS queries reach", () => {
  const answers = told(planOf({ redirectDns: true }), "dns");
  assert.deepEqual(answers.slice(0, 4), [
    "the application asks name server 10.96.0.10 by UDP|name server 10.96.0.10 by TCP -> agent: the agent answers this query",
    "the application asks any other name server by UDP -> out: no rule is about it",
    "the application asks any other name server by TCP -> envoy-outbound: all other connections go to Envoy",
    "the agent asks name server 10.96.0.10 by UDP|name server 10.96.0.10 by TCP|any other name server by UDP|any other name server by TCP -> out: whatever the proxy sends goes out",
  ]);
});

test("explainPlan() loses no rule, whatever the settings are", () => {
  const listed = (values: readonly string[]) => fc.subarray([...values]).map((some) => some.join());
  const given = fc.record({
    mode: fc.constantFrom("REDIRECT", "TPROXY"),
    inboundPorts: fc.constantFrom("*", "80,443", ""),
    outboundRanges: fc.constantFrom("*", "10.0.0.0/8,127.0.0.0/8", ""),
    outboundRangesExcluded: listed(["10.1.0.0/16", "fd00::/8"]),
    outboundPorts: listed(["25", "1000:2000"]),
    excludedInterfaces: listed(["eth1", "net+"]),
    virtualInterfaces: listed(["tap0"]),
    ownerGroups: fc.constantFrom("*", "7,8", ""),
    redirectDns: fc.boolean(),
    captureAllDns: fc.boolean(),
    dropInvalid: fc.boolean(),
  });
  fc.assert(
    fc.property(given, fc.boolean(), fc.constantFrom("iptables", "nftables"), (options, ipv6, dialect) => {
      const settings = settingsOf({ ...options, inboundPortsExcluded: "" }, ipv6);
      for (const { family, groups, further } of explainPlan(settings, dialect).families) {
        const shown = [...groups.flatMap(({ flows }) => flows.flatMap(({ steps }) => steps)), ...further];
        const words = new Set(shown.map((rule) => `${rule.table} ${rule.chain} ${rule.text}`));
        for (const rule of ruleBook(settings, family, dialect)) {
          assert.ok(words.has(`${rule.table} ${rule.chain} ${rule.text}`), rule.text);
        }
      }
    }),
    { numRuns: 50 },
  );
});

test("formatPlan() shows the sentence, the end, the reason and the rules", () => {
  const text = formatPlan(planOf({}));
  assert.match(text, /^IPv4 by iptables, mode REDIRECT\n=+\n\nInbound: what others send to the pod\n/);
  assert.ok(
    text.includes(`  the application calls any address
    -> Envoy's outbound port 15001: all other connections go to Envoy
       nat OUTPUT          -j ISTIO_OUTPUT                      # every outbound packet is looked at
       nat ISTIO_OUTPUT    -j ISTIO_REDIRECT                    # all other connections go to Envoy
       nat ISTIO_REDIRECT  -p tcp -j REDIRECT --to-ports 15001  # outbound connections enter Envoy here
`),
    text,
  );
  assert.match(text, /IPv6 is not captured: it has no rules\.\n$/);
});
