/** What the kernel has to be able to do, tried for real in a network namespace that is gone a moment later. */
import { runCommand } from "../host/command.ts";
import { type Finding, good } from "./finding.ts";

interface Feature {
  readonly check: string;
  /** Shell command that fails where the feature is missing. */
  readonly attempt: string;
  readonly remedy: string;
  /** Only some meshes need it. */
  readonly optional?: boolean;
}

const rule = (table: string, words: string) => `iptables -t ${table} -A OUTPUT ${words}`;

const FEATURES: readonly Feature[] = [
  { check: "bridge devices", attempt: "ip link add b0 type bridge", remedy: "load the module: modprobe bridge" },
  { check: "veth devices", attempt: "ip link add v0 type veth peer name v1", remedy: "load the module: modprobe veth" },
  {
    check: "iptables REDIRECT",
    attempt: rule("nat", "-p tcp -j REDIRECT --to-ports 15001"),
    remedy: "load the modules: modprobe nf_nat xt_REDIRECT nft_compat; or install another iptables",
  },
  {
    check: "iptables owner match",
    // Any account that is there for certain: in a user namespace others may not be.
    attempt: rule("nat", "-m owner --uid-owner 0 -j RETURN"),
    remedy: "load the module: modprobe xt_owner",
  },
  {
    check: "iptables mark match",
    attempt: rule("nat", "-m mark --mark 1337 -j RETURN"),
    remedy: "load the module: modprobe xt_mark",
  },
  {
    check: "iptables DNAT",
    attempt: rule("nat", "-p tcp -d 192.0.2.1 -j DNAT --to-destination 192.0.2.2"),
    remedy: "load the module: modprobe xt_nat",
  },
  {
    check: "iptables statistic match",
    attempt: rule("nat", "-m statistic --mode random --probability 0.5 -j RETURN"),
    remedy: "load the module: modprobe xt_statistic; without it workloads with inject: false have no service addresses",
  },
  {
    check: "conntrack zones",
    attempt: rule("raw", "-p udp --dport 53 -j CT --zone 1"),
    remedy: "load the module: modprobe xt_CT; without it names are resolved past the sidecar",
  },
  {
    check: "TPROXY",
    attempt: "iptables -t mangle -A PREROUTING -p tcp -j TPROXY --on-port 15006 --tproxy-mark 1337",
    remedy: "load the module: modprobe xt_TPROXY; only interception mode TPROXY needs it",
    optional: true,
  },
  {
    check: "IPv6 rules",
    attempt: "ip6tables -t nat -A OUTPUT -p tcp -j REDIRECT --to-ports 15001",
    remedy: "load the module: modprobe ip6table_nat; only meshes with IPv6 need it",
    optional: true,
  },
  {
    check: "native nftables",
    attempt: "nft add table inet t",
    remedy: "install nftables (Debian: apt-get install nftables); only --egress and NATIVE_NFTABLES need it",
    optional: true,
  },
];

/** Tells after each attempt how it went, in one line. */
const TRY = `while [ $# -gt 0 ]; do
  if words=$(sh -c "$1" 2>&1 </dev/null); then echo ok; else echo "$words" | head -n 1 | sed 's/^/no /'; fi
  shift
done`;

/** Findings about each feature. `enter` is the command line of a throwaway namespace in which one is root. */
export async function tryKernel(enter: readonly string[]): Promise<readonly Finding[]> {
  const attempts = FEATURES.map(({ attempt }) => attempt);
  const lines = (await runCommand({ argv: [...enter, "sh", "-c", TRY, "sh", ...attempts] })).split("\n");
  return FEATURES.map(({ check, remedy, optional = false }, i): Finding => {
    const line = lines[i] ?? "no answer";
    if (line === "ok") return good(check, "works");
    return { check, verdict: optional ? "poor" : "bad", found: line.replace(/^no /, "") || "does not work", remedy };
  });
}
