import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { readOptions, SWITCHES, type SwitchOption, TEXT_OPTIONS, type TextOption } from "./options.ts";

test("readOptions() prefers flags to variables and variables to defaults", () => {
  const env = { INBOUND_CAPTURE_PORT: "16006", INBOUND_TUNNEL_PORT: "16008" };
  const { options } = readOptions({ inboundPort: "17006" }, env);
  assert.deepEqual(
    [options.proxyPort, options.inboundPort, options.tunnelPort, options.dryRun],
    ["15001", "17006", "16008", false],
  );
});

test("readOptions() lets the later of two variables win", () => {
  const { options } = readOptions({}, { REDIRECT_DNS: "true", ISTIO_META_DNS_CAPTURE: "false", INVALID_DROP: "1" });
  assert.equal(options.redirectDns, false);
  assert.equal(options.dropInvalid, true);
});

test("readOptions() takes an empty variable as unset, except where it is an empty list", () => {
  const { options } = readOptions({}, { INBOUND_CAPTURE_PORT: "", ISTIO_OUTBOUND_OWNER_GROUPS: "", DRY_RUN: "" });
  assert.deepEqual([options.inboundPort, options.ownerGroups, options.dryRun], ["15006", "", false]);
});

test("readOptions() ignores a switch that is neither true nor false, and says so", () => {
  const { options, problems } = readOptions({}, { ISTIO_META_DNS_CAPTURE: "yes" });
  assert.equal(options.redirectDns, false);
  assert.deepEqual(problems, [
    {
      field: "ISTIO_META_DNS_CAPTURE",
      message: 'is "yes", not true or false; it is ignored',
      severity: "warning",
    },
  ]);
});

test("every option has a row in the reference, with its flag, its variables and its default", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/reference/istio-iptables.md"), "utf8");
  const options: readonly (TextOption | SwitchOption)[] = [...Object.values(TEXT_OPTIONS), ...Object.values(SWITCHES)];
  for (const { flag, short, env, fallback } of options) {
    const names = [...(flag === undefined ? [] : [`--${flag}`]), ...(short === undefined ? [] : [`-${short}`]), ...env];
    const row = page
      .split("\n")
      .find((line) => names.every((name) => line.startsWith("| ") && line.includes(`\`${name}\``)));
    assert.ok(row, `no row with ${names.join(" and ")}`);
    if (typeof fallback === "string" && fallback !== "") assert.ok(row.includes(`\`${fallback}\``), row);
  }
});
