/** What a run changes in a network namespace, what it leaves alone, and what it takes back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { NetworkNamespace } from "../../test/support/network-namespace.ts";
import { runCapture } from "./run.ts";
import type { GivenOptions } from "./settings/options.ts";

const env = { PATH: process.env.PATH };
const STANDARD: GivenOptions = {
  proxyUid: "1337",
  mode: "REDIRECT",
  inboundPorts: "*",
  inboundPortsExcluded: "15090,15021,15020",
  outboundRanges: "*",
  dualStack: true,
};
const TPROXY: GivenOptions = {
  ...STANDARD,
  mode: "TPROXY",
  tproxyMark: "4242",
  tproxyTable: "77",
  redirectDns: true,
  captureAllDns: true,
  dropInvalid: true,
  excludedInterfaces: "eth9",
  virtualInterfaces: "tap0",
};
const BACK_ENDS: Readonly<Record<string, GivenOptions>> = {
  "iptables-nft": { forcedBinary: "nft" },
  "iptables-legacy": { forcedBinary: "legacy" },
  nftables: { nativeNftables: true },
};

let opened = 0;

function open(): Promise<NetworkNamespace> {
  return NetworkNamespace.open(`changes-${process.pid}-${opened++}`, ["10.9.0.1/24", "fd09::1/64"]);
}

function capture(pod: NetworkNamespace, given: GivenOptions): Promise<void> {
  return runCapture({ given: { networkNamespace: pod.path, ...given }, env, log: SILENT });
}

async function addForeignRules(pod: NetworkNamespace, program: string): Promise<void> {
  await pod.run(`${program} -t nat -A OUTPUT -d 203.0.113.1/32 -j ACCEPT`);
  await pod.run(`${program} -t nat -N CUSTOM`);
  await pod.run(`${program} -t nat -A PREROUTING -i eth1 -j RETURN`);
  await pod.run(`${program} -t filter -A INPUT -p tcp -m tcp --dport 9 -m comment --comment somebodys -j DROP`);
}

const skip = process.getuid?.() === 0 ? false : "needs root to make network namespaces";

describe("changes in a network namespace", { skip }, () => {
  for (const [name, backEnd] of Object.entries(BACK_ENDS)) {
    test(`cleaning takes everything back that was made with ${name}`, async () => {
      await using pod = await open();
      const legacy = name === "iptables-legacy";
      // Reading a legacy table makes it, and a table that was made cannot be removed.
      if (legacy) {
        for (const table of ["nat", "mangle", "raw"]) {
          await pod.run(`iptables-legacy -t ${table} -S`);
          await pod.run(`ip6tables-legacy -t ${table} -S`);
        }
      }
      const empty = await pod.state();
      await capture(pod, { ...TPROXY, ...backEnd });
      assert.match(await pod.state(), /fwmark 0x1092 lookup 77[\s\S]*inet6 ::6\/128/);
      await capture(pod, { cleanupOnly: true });
      assert.equal(await pod.state(), empty);
    });

    test(`a second run with ${name} changes nothing, not even counters`, async () => {
      await using pod = await open();
      const given = { ...TPROXY, ...backEnd };
      await capture(pod, given);
      await pod.run(["bash", "-c", "echo packet > /dev/udp/10.9.0.1/9"]);
      const listing = nameOfListing(name);
      const before = await pod.run(listing);
      const counted = /\[[1-9]\d*:\d+\] -A OUTPUT -j ISTIO_OUTPUT$|packets [1-9]\d* bytes \d+ jump istio-output$/m;
      assert.match(before.stdout, counted);
      await capture(pod, given);
      const after = await pod.run(listing);
      // Made anew, the counters would be 0. The kernel itself sends something now and then, so they may have grown.
      assert.match(after.stdout, counted);
      assert.equal(uncounted(after.stdout), uncounted(before.stdout));
      await capture(pod, { cleanupOnly: true });
    });

    test(`other settings with ${name} give what a first run with them gives`, async () => {
      await using fresh = await open();
      await capture(fresh, { ...STANDARD, ...backEnd });
      const wanted = await fresh.state();
      await using pod = await open();
      await capture(pod, { ...TPROXY, ...backEnd });
      await capture(pod, { ...STANDARD, ...backEnd });
      assert.equal(withoutEmptyTables(await pod.state()), withoutEmptyTables(wanted));
    });

    test(`a failure half-way with ${name} leaves the namespace as it was`, async () => {
      await using pod = await open();
      await capture(pod, { ...STANDARD, ...backEnd });
      const before = await pod.state();
      const unknown = { ...TPROXY, ...backEnd, proxyGid: "no-such-group" };
      await assert.rejects(capture(pod, unknown), { code: "CAPTURE_FAILED", message: /^Cannot apply the rules with / });
      assert.equal(withoutEmptyTables(await pod.state()), withoutEmptyTables(before));
      // The rules can be made, but the routes cannot: their interface is down.
      await pod.run("ip link set lo down");
      const down = await pod.state();
      await assert.rejects(capture(pod, { ...TPROXY, ...backEnd }), /^MeshError: Cannot run "ip -6 route add local/);
      assert.equal(withoutEmptyTables(await pod.state()), withoutEmptyTables(down));
    });
  }

  for (const program of ["iptables-nft", "iptables-legacy"]) {
    test(`rules of others in ${program} are as they were, whenever they came`, async () => {
      await using pod = await open();
      await addForeignRules(pod, program);
      const forced = { forcedBinary: program.replace("iptables-", "") };
      await capture(pod, { ...TPROXY, ...forced });
      await capture(pod, { cleanupOnly: true });
      await using other = await open();
      await addForeignRules(other, program);
      assert.equal(withoutEmptyTables(await pod.state()), withoutEmptyTables(await other.state()));

      await using later = await open();
      await capture(later, { ...TPROXY, ...forced });
      await addForeignRules(later, program);
      await capture(later, { ...STANDARD, ...forced });
      await capture(later, { cleanupOnly: true });
      assert.equal(withoutEmptyTables(await later.state()), withoutEmptyTables(await other.state()));
    });
  }

  test("tables of others in nftables are as they were", async () => {
    await using pod = await open();
    await pod.run("nft add table inet firewall");
    await pod.run("nft add chain inet firewall input { type filter hook input priority 0 ; policy drop ; }");
    const before = await pod.state();
    await capture(pod, { ...TPROXY, nativeNftables: true });
    await capture(pod, { cleanupOnly: true, nativeNftables: true });
    assert.equal(await pod.state(), before);
  });

  test("another back end takes over: no rules are left in the one before", async () => {
    await using pod = await open();
    const empty = await pod.state();
    await capture(pod, { ...TPROXY, nativeNftables: true });
    await capture(pod, { ...STANDARD, forcedBinary: "nft" });
    assert.doesNotMatch(await pod.state(), /istio-proxy/);
    await capture(pod, { ...STANDARD, nativeNftables: true });
    assert.doesNotMatch(await pod.state(), /ISTIO_/);
    await capture(pod, { cleanupOnly: true });
    assert.equal(await pod.state(), empty);
  });

  test("cleaning removes what was only half made", async () => {
    await using pod = await open();
    const empty = await pod.state();
    await capture(pod, { ...TPROXY, forcedBinary: "nft" });
    await pod.run("iptables-nft -t nat -D OUTPUT -j ISTIO_OUTPUT");
    await pod.run("iptables-nft -t mangle -F ISTIO_INBOUND");
    await pod.run("ip -4 route flush table 77");
    await capture(pod, { cleanupOnly: true });
    assert.equal(await pod.state(), empty);
    await capture(pod, { cleanupOnly: true });
    assert.equal(await pod.state(), empty);
  });

  test("rules that nothing marks are known again, and those of others that look the same are not", async () => {
    await using pod = await open();
    await pod.run("iptables-nft -t nat -A PREROUTING -i tap1 -j RETURN");
    const before = await pod.state();
    await capture(pod, { ...STANDARD, outboundRanges: "", virtualInterfaces: "tap0", forcedBinary: "nft" });
    await capture(pod, { cleanupOnly: true });
    assert.equal(withoutEmptyTables(await pod.state()), withoutEmptyTables(before));
    await capture(pod, { ...STANDARD, outboundRanges: "", virtualInterfaces: "tap0", forcedBinary: "nft" });
    await capture(pod, { ...STANDARD, forcedBinary: "nft" });
    assert.doesNotMatch(await pod.state(), /tap0/);
  });

  test("a dry run and skipped rules change nothing", async () => {
    await using pod = await open();
    const before = await pod.state();
    await capture(pod, { ...TPROXY, dryRun: true });
    await capture(pod, { ...TPROXY, dryRun: true, nativeNftables: true });
    await capture(pod, { ...TPROXY, skipRuleApply: true });
    assert.equal(await pod.state(), before);
  });
});

function nameOfListing(backEnd: string): string {
  return backEnd === "nftables" ? "nft list ruleset" : `${backEnd}-save -c`;
}

/** A listing without the time and the counters in it. */
function uncounted(saved: string): string {
  return saved
    .replaceAll(/^#.*\n/gm, "")
    .replaceAll(/\[\d+:\d+\]/g, "[]")
    .replaceAll(/packets \d+ bytes \d+/g, "");
}

/** Tables that only have their built-in chains: whether they show up depends on who touched them before. */
function withoutEmptyTables(state: string): string {
  return state
    .replaceAll(/^\*\w+\n(:[A-Z]+ ACCEPT\n)*COMMIT\n/gm, "")
    .replaceAll(/^table \S+ \S+ \{\n(\tchain [A-Z]+ \{\n\t\ttype [^\n]*\n\t\}\n|\n)*\}\n/gm, "");
}
