import assert from "node:assert/strict";
import test from "node:test";
import { meshFolder, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable } from "../../../test/support/mesh-run.ts";
import { runCommand } from "../host/command.ts";
import { rangeProblem } from "../mesh/address-range.ts";
import { routeInto } from "./check-range.ts";

const ROUTES = `default via 192.168.1.1 dev eth0 proto dhcp metric 100
10.244.3.0/24 via 192.168.1.7 dev eth1 proto static
192.168.1.0/24 dev eth0 proto kernel scope link src 192.168.1.20
203.0.113.9 dev tun0 scope link
`;

test("routeInto() finds networks and single addresses of the range, and not the default route", () => {
  assert.deepEqual(routeInto(ROUTES, "10.244.0.0/16"), { network: "10.244.3.0/24", device: "eth1" });
  assert.deepEqual(routeInto(ROUTES, "203.0.113.0/24"), { network: "203.0.113.9/32", device: "tun0" });
  assert.equal(routeInto(ROUTES, "10.99.0.0/16"), undefined);
});

const printed = meshUnavailable() === false ? await runCommand({ argv: ["ip", "-4", "route"] }) : "";
const ours = printed
  .split("\n")
  .map((line) => line.split(" ")[0] ?? "")
  .find((network) => network.includes("/") && rangeProblem(network) === undefined);

test("up --egress of a mesh with the addresses of a network of the machine says so and how to choose others", {
  skip: meshUnavailable() || (ours === undefined && "this machine has no network of its own"),
}, async () => {
  await using folder = await meshFolder(`  network: {cidr: ${ours}}${WEB_SPEC}`);
  const { code, stderr } = await folder.up("--egress");
  assert.equal(code, 1);
  assert.match(stderr, /overlap .*, which this machine reaches by ".*", .* choose another range in mesh\.yaml/);
});

test("a mesh has the addresses that its file says, and keeps them while it is up", {
  skip: meshUnavailable(),
}, async () => {
  await using folder = await meshFolder(`  network: {cidr: 10.99.32.0/24}${WEB_SPEC}`);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  assert.equal((await folder.running.member("web")).address, "10.99.32.10");
  assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web");
  await folder.write(`  network: {cidr: 10.99.33.0/24}${WEB_SPEC}`);
  const { code, stderr } = await folder.up();
  assert.equal(code, 1);
  assert.match(
    stderr,
    /Cannot change spec\.network\.cidr from 10\.99\.32\.0\/24 to 10\.99\.33\.0\/24 while the mesh is up/,
  );
});
