/** Security objects with a mistake: rejected by `up` and `apply`, and denying in a mesh that is up. */
import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import test from "node:test";
import { eventually } from "../../../test/support/fake-control-plane.ts";
import { meshFolder, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable } from "../../../test/support/mesh-run.ts";

const policy = (spec: string) =>
  `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: broken}\nspec: ${spec}\n`;
const BROKEN = policy("{action: DENIED, rules: [{to: [{operation: {paths: [/admin]}}]}]}");
const GOOD = BROKEN.replace("DENIED", "DENY");

test("a security object that cannot be read", { skip: meshUnavailable() }, async (t) => {
  await using folder = await meshFolder(WEB_SPEC);
  const status = async (path: string) => (await folder.running.curl("plain", `http://web:8000${path}`)).status;
  const becomes = (path: string, expected: number) =>
    eventually(`${path} is answered with ${expected}`, async () => (await status(path)) === expected);

  await t.test("up rejects it", async () => {
    await folder.add("policy.yaml", BROKEN);
    const refused = await folder.up();
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, /policy\.yaml:4: AuthorizationPolicy\/default\/broken: spec\.action must be one of/);
    await rm(join(folder.path, "policy.yaml"));
    assert.equal((await folder.up()).code, 0);
    await becomes("/", 200);
  });

  await t.test("it denies in a mesh that is up, ps says so, and up and apply still reject it", async () => {
    await folder.add("policy.yaml", BROKEN);
    await becomes("/", 403);
    const ps = await folder.mizzen("ps");
    assert.match(
      ps.stderr,
      /AuthorizationPolicy\/default\/broken: cannot be read .*denies all traffic to all workloads/,
    );
    assert.equal((await folder.up()).code, 2);
    const applied = await folder.mizzen("apply", join(folder.path, "policy.yaml"));
    assert.equal(applied.code, 2);
    assert.match(applied.stderr, /spec\.action must be one of/);
  });

  await t.test("it denies after a restart of the control plane", async () => {
    assert.equal((await folder.mizzen("restart", "istiod")).code, 0);
    assert.equal(await status("/"), 403);
  });

  await t.test("repaired, it denies what it says; broken again, it keeps doing so", async () => {
    await folder.add("policy.yaml", GOOD);
    await becomes("/", 200);
    await becomes("/admin", 403);
    await folder.add("policy.yaml", BROKEN);
    await eventually("the mistake is known", async () => /must be one of/.test((await folder.mizzen("ps")).stderr));
    assert.deepEqual([await status("/"), await status("/admin")], [200, 403]);
    await rm(join(folder.path, "policy.yaml"));
    await becomes("/admin", 200);
  });

  await t.test("mesh.yaml may say that it is ignored", async () => {
    await folder.write(`  onUnreadablePolicy: ignore\n${WEB_SPEC}`);
    const changed = await folder.up();
    assert.equal(changed.code, 0, changed.stderr);
    await folder.add("policy.yaml", BROKEN);
    await eventually("ps says so", async () => /it is ignored/.test((await folder.mizzen("ps")).stderr));
    assert.equal(await status("/"), 200);
  });
});
