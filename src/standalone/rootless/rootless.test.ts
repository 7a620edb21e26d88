import assert from "node:assert/strict";
import test from "node:test";
import { accountsOfMap } from "../host/user-namespace.ts";
import { markedCaptureRules } from "./marked-rules.ts";
import { refusal } from "./refusal.ts";
import { idMap, subordinateIds } from "./subordinate-ids.ts";

const ANN = { uid: 1000, name: "ann" };

test("subordinateIds() finds the range of an account by its name or number, if it is large enough", () => {
  const text = "bob:100000:65536\nann:165536:65536\n";
  assert.deepEqual(subordinateIds(text, ANN), { first: 165_536, count: 65_536 });
  assert.deepEqual(subordinateIds("1000:7:65534", { uid: 1000, name: undefined }), { first: 7, count: 65_534 });
  assert.deepEqual(subordinateIds("ann:1:10\nann:500000:70000", ANN), { first: 500_000, count: 70_000 });
  for (const useless of ["", "ann:165536:1000", "ann:0:65536", "ann:x:65536", "ann:1", "annie:165536:65536", "::"]) {
    assert.equal(subordinateIds(useless, ANN), undefined, useless);
  }
});

test("idMap() makes the account root and the given ones all others", () => {
  assert.deepEqual(idMap(1000, { first: 165_536, count: 65_536 }), ["0", "1000", "1", "1", "165536", "65536"]);
});

test("accountsOfMap() tells how many accounts a process can be", () => {
  assert.equal(accountsOfMap("         0          0 4294967295\n"), "all");
  assert.equal(accountsOfMap("0 1000 1\n1 165536 65536\n"), "many");
  assert.equal(accountsOfMap("         0       1000          1\n"), "one");
});

test("refusal() names the setting that forbids user namespaces, and sudo in any case", async () => {
  const settings: Record<string, string> = { "kernel.unprivileged_userns_clone": "1", "user.max_user_namespaces": "0" };
  const told = await refusal(undefined, async (name) => settings[name]);
  assert.equal(told.code, "NOT_ROOT");
  assert.equal(
    told.message,
    "Cannot run a mesh without root: user.max_user_namespaces=0 forbids user namespaces; allow them with `sudo sysctl -w user.max_user_namespaces=10000`, or run it with sudo",
  );
  const untold = await refusal(new Error("Operation not permitted"), async () => undefined);
  assert.match(untold.message, /a container may forbid them\); run it with sudo$/);
  assert.ok(untold.cause instanceof Error);
});

test("markedCaptureRules() spares what is marked and the control plane, and looks at no account", () => {
  const rules = markedCaptureRules({ proxyUid: "1337", outboundRanges: "*", inboundPorts: "*", redirectDns: true });
  assert.doesNotMatch(rules, /owner|\* raw/);
  assert.match(rules, /^-A ISTIO_OUTPUT -m mark --mark 1337 -j RETURN$/m);
  assert.match(rules, /^-A ISTIO_OUTPUT -o lo .*-m mark ! --mark 1337 -j RETURN$/m);
  assert.match(rules, /^-A ISTIO_OUTPUT -d 10\.244\.0\.2\/32 -j RETURN$/m);
  const lines = rules.split("\n").filter((line) => line !== "");
  assert.equal(new Set(lines).size, lines.length, "no rule comes twice");
  const more = markedCaptureRules({ outboundRanges: "*", outboundRangesExcluded: "192.0.2.0/24" });
  assert.match(more, /^-A ISTIO_OUTPUT -d 192\.0\.2\.0\/24 -j RETURN$/m);
});
