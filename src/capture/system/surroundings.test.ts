import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Commands } from "./commands.ts";
import { detectSurroundings, parseNameServers, wantsIpv6 } from "./surroundings.ts";

test("wantsIpv6() goes by the addresses that others can reach", () => {
  assert.equal(wantsIpv6(["127.0.0.1", "::1", "10.0.0.1", "fe80::1", "fd00::1"], false), false);
  assert.equal(wantsIpv6(["127.0.0.1", "10.0.0.1", "fd00::1"], true), true);
  assert.equal(wantsIpv6(["127.0.0.1", "::1", "fd00::1"], false), true);
  assert.equal(wantsIpv6(["10.0.0.1", "fe80::1"], true), false);
  assert.equal(wantsIpv6([], true), false);
});

test("parseNameServers() reads addresses by family and leaves out what is none", () => {
  const text =
    "# nameserver 9.9.9.9\nsearch a.b\nnameserver 10.0.0.53\n nameserver\t FD00::53\nnameserver fe80::1%eth0\nnameserver\nnameserver dns";
  assert.deepEqual(parseNameServers(text), { v4: ["10.0.0.53"], v6: ["fd00::53"] });
});

async function inRoot(files: Record<string, string>, use: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "capture-"));
  try {
    await mkdir(join(root, "etc"));
    for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
    await use(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

function addresses(stdout: string, code = 0): Commands {
  return { run: () => Promise.resolve({ code, stdout, stderr: "" }) };
}

const V6_ONLY = "1: lo    inet 127.0.0.1/8 scope host lo\n2: eth0    inet6 fd00::7/64 scope global\n";

test("detectSurroundings() reads addresses, name servers and the proxy's account", async () => {
  const passwd = "root:x:0:0::/root:/bin/sh\nenvoy:x:998:997::/:/bin/false\n";
  await inRoot({ "etc/passwd": passwd, "etc/resolv.conf": "nameserver 10.0.0.53\n" }, async (root) => {
    const input = { commands: addresses(V6_ONLY), dualStack: false, nameServers: true, proxyUser: "envoy", root };
    assert.deepEqual(await detectSurroundings(input), {
      ipv6: true,
      dnsServers: { v4: ["10.0.0.53"], v6: [] },
      proxyUid: "998",
    });
  });
});

test("detectSurroundings() falls back to IPv4 and 1337, and reads resolv.conf only when asked", async () => {
  await inRoot({}, async (root) => {
    const input = { commands: addresses("", 127), dualStack: true, nameServers: false, proxyUser: "envoy", root };
    assert.deepEqual(await detectSurroundings(input), {
      ipv6: false,
      dnsServers: { v4: [], v6: [] },
      proxyUid: "1337",
    });
    await assert.rejects(
      detectSurroundings({ ...input, nameServers: true }),
      /Cannot read the name servers .*resolv.conf/,
    );
  });
});
