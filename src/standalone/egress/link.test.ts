import assert from "node:assert/strict";
import test from "node:test";
import { chooseLink, fabricLines, hostLines, hostRules, usedAddresses } from "./link.ts";

test("chooseLink() gives a mesh two addresses that nobody has", () => {
  const link = chooseLink("000000", []);
  assert.deepEqual(link, {
    name: "mze-000000",
    table: "mizzen_000000",
    hostAddress: "198.18.0.1",
    fabricAddress: "198.18.0.2",
    prefixLength: 30,
  });
  assert.equal(chooseLink("000000", ["10.0.0.1", "198.18.0.3"])?.hostAddress, "198.18.0.5");
  assert.equal(chooseLink("ffffff", [])?.fabricAddress, "198.19.255.254");
  assert.equal(chooseLink("ffffff", ["198.19.255.253"])?.hostAddress, "198.18.0.1", "it goes round");
});

test("chooseLink() gives up when all are taken", () => {
  const all = Array.from({ length: 2 ** 15 }, (_, i) => `198.${18 + (i >> 14)}.${(i >> 6) & 255}.${(i & 63) * 4 + 1}`);
  assert.equal(chooseLink("abcdef", all), undefined);
});

test("usedAddresses() reads both ends of what `ip` prints", () => {
  const printed = `1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever
4: tun0    inet 198.18.0.1 peer 198.18.0.2/32 scope global tun0\\       valid_lft forever
`;
  assert.deepEqual(usedAddresses(printed), ["127.0.0.1", "198.18.0.1", "198.18.0.2"]);
});

test("hostRules() masquerades the fabric alone, and keeps the machine from routing for its neighbours", () => {
  const link = chooseLink("00000a", []);
  assert.ok(link);
  assert.match(
    hostRules(link, []),
    /^table ip mizzen_00000a \{\n {2}chain out \{[^}]*ip saddr 198\.18\.0\.42 masquerade/,
  );
  assert.doesNotMatch(hostRules(link, []), /hook forward/);
  assert.match(hostRules(link, ["eth0", "wlan0"]), /iifname \{ "eth0", "wlan0" \} oifname != "mze-\*" drop/);
  assert.deepEqual(hostLines(link, "mizzen-00000a-fabric"), [
    "link add mze-00000a type veth peer name out0 netns mizzen-00000a-fabric",
    "addr add 198.18.0.41/30 dev mze-00000a",
    "link set mze-00000a up",
  ]);
  assert.equal(fabricLines(link).at(-1), "route add default via 198.18.0.41");
});
