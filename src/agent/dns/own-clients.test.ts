import assert from "node:assert/strict";
import type { NetworkInterfaceInfo } from "node:os";
import { test } from "node:test";
import { ownClients } from "./own-clients.ts";

const info = (address: string) => ({ address }) as NetworkInterfaceInfo;

test("ownClients() knows loopback and the machine's own addresses, and nobody else", () => {
  const isOwn = ownClients(() => ({ eth0: [info("10.1.2.3"), info("fd00::3"), info("fe80::3")] }));
  for (const address of [
    "127.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "10.1.2.3",
    "::ffff:10.1.2.3",
    "fd00::3",
    "fe80::3%eth0",
  ])
    assert.ok(isOwn(address), address);
  for (const address of ["10.1.2.4", "192.0.2.1", "::ffff:192.0.2.1", "fd00::4", "", "::"])
    assert.ok(!isOwn(address), address);
});

test("ownClients() looks at the interfaces again after a while, however often strangers ask", () => {
  let looks = 0;
  let now = 0;
  let addresses = [info("10.0.0.1")];
  const isOwn = ownClients(
    () => {
      looks++;
      return { eth0: addresses };
    },
    () => now,
  );
  for (let i = 0; i < 100; i++) assert.ok(!isOwn("10.0.0.2"));
  assert.equal(looks, 1);
  addresses = [info("10.0.0.2")];
  now = 5_000;
  assert.ok(isOwn("10.0.0.2"));
});
