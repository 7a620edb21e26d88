/** Options of istio-iptables, which pods set by annotations, and what iptables-save prints. No option may become a rule. */
import assert from "node:assert/strict";
import { formatRestore } from "#capture/iptables/restore.ts";
import { ruleLine } from "#capture/iptables/rule-text.ts";
import { canonicalSpec, formatSaved, parseSaved } from "#capture/iptables/saved.ts";
import { captureRules } from "#capture/rules/capture-rules.ts";
import { readOptions, TEXT_OPTIONS } from "#capture/settings/options.ts";
import { parseCaptureSettings } from "#capture/settings/settings.ts";
import type { FuzzTarget } from "./target.ts";

const AROUND = { ipv6: true, dnsServers: { v4: ["10.0.0.53"], v6: ["fd00::53"] }, proxyUid: "1337" };
/** One rule a line, of words without quotes: neither a shell nor iptables-restore reads them as anything else. */
const RESTORE_LINE = /^(\* ?\w+|COMMIT|-[NAI] [\w-]+( [^\s"'`\\;&|<>$]+)*|)$/;

export const target: FuzzTarget = {
  maxBytes: 1024,
  dictionary: [
    ...Object.keys(TEXT_OPTIONS),
    "=",
    "\n",
    "*",
    "10.0.0.0/8",
    "::/0",
    "15001",
    "1:65535",
    "eth0",
    "1337",
    "-A INPUT -j ACCEPT",
    "; ",
    "*nat\n",
    "COMMIT\n",
    ":PREROUTING ACCEPT [0:0]",
    "--dport 80",
  ],
  run(input) {
    const text = input.toString();
    const lines = text.split("\n").map((line) => line.split("="));
    const given = Object.fromEntries(
      lines.filter(([name = ""]) => Object.hasOwn(TEXT_OPTIONS, name)).map(([name, value = ""]) => [name, value]),
    );
    const { value: settings, problems } = parseCaptureSettings(readOptions(given, {}).options, AROUND);
    assert.ok(settings !== undefined || problems.length > 0);
    if (settings !== undefined) {
      const rules = [...captureRules(settings, "v4"), ...captureRules(settings, "v6")];
      for (const line of formatRestore(rules.map(ruleLine)).split("\n")) assert.match(line, RESTORE_LINE);
    }
    for (const table of parseSaved(text).values())
      for (const specs of table.values()) for (const spec of specs) canonicalSpec(spec);
    formatSaved(text, ["nat", "filter"]);
  },
};
