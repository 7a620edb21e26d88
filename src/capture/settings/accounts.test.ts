import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readAccounts, withNumericIds } from "./accounts.ts";
import { readOptions } from "./options.ts";
import { parseCaptureSettings } from "./settings.ts";

const AROUND = { ipv6: false, dnsServers: { v4: [], v6: [] }, proxyUid: "1337" };

test("readAccounts() reads names and numbers, and finds none where there are no files", async () => {
  const root = await mkdtemp(join(tmpdir(), "accounts-"));
  assert.equal((await readAccounts(root)).users.size, 0);
  await mkdir(join(root, "etc"));
  await writeFile(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\nistio-proxy:x:1337:1338::/:\n\nbroken\n");
  await writeFile(join(root, "etc/group"), "mesh:x:1338:\n");
  const { users, groups } = await readAccounts(root);
  assert.deepEqual(
    [...users],
    [
      ["root", "0"],
      ["istio-proxy", "1337"],
    ],
  );
  assert.deepEqual([...groups], [["mesh", "1338"]]);
  await rm(root, { recursive: true });
});

test("withNumericIds() replaces the names it knows", () => {
  const given = { proxyUid: "istio-proxy,99,ghost", proxyGid: "mesh", ownerGroups: "mesh,7" };
  const { value: settings } = parseCaptureSettings(readOptions(given, {}).options, AROUND);
  assert.ok(settings);
  const accounts = { users: new Map([["istio-proxy", "1337"]]), groups: new Map([["mesh", "1338"]]) };
  const numeric = withNumericIds(settings, accounts);
  assert.deepEqual(numeric.proxyUids, ["1337", "99", "ghost"]);
  assert.deepEqual(numeric.proxyGids, ["1338"]);
  assert.deepEqual(numeric.ownerGroups, { kind: "only", groups: ["1338", "7"] });
});
