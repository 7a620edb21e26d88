import assert from "node:assert/strict";
import { test } from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { type ApplyInput, applyCapture, cleanCapture } from "./apply.ts";
import { plainBackends } from "./iptables/backend.ts";
import { type GivenOptions, readOptions } from "./settings/options.ts";
import { parseCaptureSettings } from "./settings/settings.ts";
import type { CommandResult, Commands } from "./system/commands.ts";

const SAVED_V4 = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j DROP\nCOMMIT\n";

interface Machine extends Commands {
  /** Commands that change something, with their input. */
  readonly changes: readonly string[];
}

/** Prints one foreign rule for IPv4 and fails the commands that match. */
function machine(failing: RegExp, stderr = "no"): Machine {
  const changes: string[] = [];
  return {
    changes,
    run: (command, args, input): Promise<CommandResult> => {
      if (command === "iptables-save") return Promise.resolve({ code: 0, stdout: SAVED_V4, stderr: "" });
      if (command === "ip6tables-save") return Promise.resolve({ code: 0, stdout: "", stderr: "" });
      const call = [command, ...args].join(" ");
      changes.push(input === undefined ? call : `${call} < ${input.split("\n", 1)[0]}`);
      return Promise.resolve(
        failing.test(call) ? { code: 2, stdout: "", stderr } : { code: 0, stdout: "", stderr: "" },
      );
    },
  };
}

async function inputOf(commands: Commands, given: GivenOptions = {}): Promise<ApplyInput> {
  const around = { ipv6: true, dnsServers: { v4: [], v6: [] }, proxyUid: "1337" };
  const { value: settings } = parseCaptureSettings(readOptions(given, {}).options, around);
  assert.ok(settings);
  const machine = { dialect: "iptables", backends: await plainBackends(commands), nftListing: undefined } as const;
  return { settings, machine, commands, log: SILENT };
}

test("applyCapture() restores each family once, then adds addresses and routes", async () => {
  const commands = machine(/never/);
  await applyCapture(await inputOf(commands, { mode: "TPROXY", inboundPorts: "*" }));
  assert.deepEqual(commands.changes, [
    "iptables-restore --noflush < * mangle",
    "ip6tables-restore --noflush < * mangle",
    "ip -6 address add ::6/128 dev lo",
    "ip -4 rule add fwmark 1337 lookup 133",
    "ip -4 route add local default dev lo table 133",
    "ip -6 rule add fwmark 1337 lookup 133",
    "ip -6 route add local default dev lo table 133",
  ]);
});

test("applyCapture() puts IPv4 back when IPv6 fails", async () => {
  const commands = machine(/^ip6tables-restore --noflush/, "broken pipe");
  await assert.rejects(applyCapture(await inputOf(commands)), {
    code: "CAPTURE_FAILED",
    message: "Cannot apply the rules with ip6tables-restore: broken pipe",
  });
  assert.deepEqual(commands.changes, [
    "iptables-restore --noflush < * nat",
    "ip6tables-restore --noflush < * nat",
    "ip6tables-restore --counters < *nat",
    "iptables-restore --counters < *nat",
  ]);
});

test("applyCapture() puts rules and routes back when a route fails", async () => {
  const commands = machine(/^ip -4 route/, "Operation not permitted");
  await assert.rejects(
    applyCapture(await inputOf(commands, { mode: "TPROXY", inboundPorts: "80" })),
    /Cannot run "ip -4 route add/,
  );
  assert.deepEqual(commands.changes.slice(2), [
    "ip -6 address add ::6/128 dev lo",
    "ip -4 rule add fwmark 1337 lookup 133",
    "ip -4 route add local default dev lo table 133",
    "ip -4 rule del fwmark 1337 lookup 133",
    "ip -6 address del ::6/128 dev lo",
    "ip6tables-restore --counters < *mangle",
    "iptables-restore --counters < *mangle",
  ]);
});

test("applyCapture() is content with what is there already, and takes none of it back", async () => {
  for (const words of ["RTNETLINK answers: File exists", "Error: ipv6: address already assigned."]) {
    await applyCapture(await inputOf(machine(/^ip -6 address add/, words)));
  }
  const commands = machine(/^ip -[46] r/, "RTNETLINK answers: File exists");
  await applyCapture(await inputOf(commands, { mode: "TPROXY", inboundPorts: "*" }));
  assert.ok(!commands.changes.some((call) => call.includes(" del ")));
});

test("cleanCapture() touches no rules where there are none of ours", async () => {
  const commands = machine(/never/);
  await cleanCapture(await inputOf(commands));
  assert.deepEqual(
    commands.changes.filter((call) => call.includes("tables")),
    [],
  );
});
