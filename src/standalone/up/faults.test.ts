/** Machines and programs that do not do what they should: each is a sentence, and nothing is left behind. */
import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { type MeshFolder, meshFolder, tracesOf, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { meshUnavailable, mizzen } from "../../../test/support/mesh-run.ts";
import { runCommand } from "../host/command.ts";
import { meshId } from "../plan/names.ts";

const skip = meshUnavailable();

async function assertNothingLeft({ state }: MeshFolder): Promise<void> {
  assert.deepEqual(await tracesOf(meshId(state), state), []);
}

/** A disk of its own for the state of a mesh. */
async function smallDisk({ disk }: MeshFolder, size: string): Promise<AsyncDisposable> {
  await mkdir(disk);
  await runCommand({ argv: ["mount", "-t", "tmpfs", "-o", `mode=0755,size=${size}`, "tmpfs", disk] });
  return { [Symbol.asyncDispose]: async () => void (await runCommand({ argv: ["umount", "--lazy", disk] })) };
}

test("an app that ignores SIGTERM is ended by force, and that is said", { skip }, async () => {
  await using folder = await meshFolder(
    `  workloads: [{name: deaf, inject: false, command: [sh, -c, "trap '' TERM; while :; do sleep 0.1; done"]}]\n`,
  );
  assert.equal((await folder.up()).code, 0);
  const stopped = await folder.mizzen("stop", "deaf");
  assert.equal(stopped.code, 0, stopped.stderr);
  assert.match(stopped.stderr, /^deaf did not end within 5 s of SIGTERM: killed$/m);
  await folder.mizzen("start", "deaf");
  assert.equal((await folder.running.down()).code, 0);
  await assertNothingLeft(folder);
});

test("a port that is taken inside is told in the app's own words", { skip }, async () => {
  await using folder = await meshFolder(WEB_SPEC.replace("ports: [80]", 'env: {PORT: "15021"}\n    ports: [80]'));
  const failed = await folder.up();
  assert.equal(failed.code, 1);
  assert.match(
    failed.stderr,
    /^mizzen: workload "web" exited with code 1, 3 times in a row; it said: Error: listen EADDRINUSE/m,
  );
  await assertNothingLeft(folder);
});

test("two workloads of one name, and circles, are refused with file and line", { skip }, async () => {
  await using folder = await meshFolder(`
  workloads:
  - {name: web, command: [sleep, infinity]}
  - {name: web, command: [sleep, infinity]}
  - {name: a, command: [sleep, infinity], after: [a]}
`);
  const refused = await folder.up();
  assert.equal(refused.code, 2);
  assert.match(
    refused.stderr,
    /mesh\.yaml:8: spec\.workloads\[1\]\.name "web" in namespace "default" is already the name/,
  );
  assert.match(
    refused.stderr,
    /mesh\.yaml:9: spec\.workloads\[2\]\.after leads back to itself: a\.default -> a\.default/,
  );
  await assertNothingLeft(folder);
});

test("labels that no Service selects, and Services that select nothing, are hints", { skip }, async () => {
  await using folder = await meshFolder(
    "\n  workloads:\n  - {name: web, inject: false, labels: {app: wbe}, command: [node, web.cjs], ports: [80]}\n",
  );
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  assert.match(
    started.stderr,
    /hint: .*service\.yaml:2: Service "web" in namespace "default" selects no workload \(app=web\)/,
  );
  assert.match(started.stderr, /hint: .*mesh\.yaml:7: workload "web" is selected by no Service in namespace "default"/);
});

test("a disk that is full, or read-only, is said; down works on both", { skip }, async (t) => {
  await t.test("full before the start", async () => {
    await using folder = await meshFolder(WEB_SPEC);
    await using _ = await smallDisk(folder, "16k");
    const failed = await folder.up();
    assert.equal(failed.code, 3, failed.stderr);
    assert.match(
      failed.stderr,
      /^mizzen: Cannot keep state in ".*state": the disk is full; make room, or choose another/m,
    );
    await assertNothingLeft(folder);
  });
  await t.test("full while the mesh is up", async () => {
    await using folder = await meshFolder(WEB_SPEC);
    await using _ = await smallDisk(folder, "2m");
    const started = await folder.up();
    assert.equal(started.code, 0, started.stderr);
    await runCommand({ argv: ["sh", "-c", 'cat /dev/zero > "$1"/logs/fill 2>/dev/null; true', "sh", folder.state] });
    assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web");
    assert.equal((await folder.running.down()).code, 0);
    await assertNothingLeft(folder);
  });
  await t.test("read-only before the start, and while the mesh is up", async () => {
    await using folder = await meshFolder("  workloads: [{name: plain, inject: false, command: [sleep, infinity]}]\n");
    await using _ = await smallDisk(folder, "2m");
    const remount = (mode: string) => runCommand({ argv: ["mount", "-o", `remount,${mode}`, folder.disk] });
    await remount("ro");
    const refused = await folder.up();
    assert.equal(refused.code, 3, refused.stderr);
    assert.match(refused.stderr, /the file system is read-only; make room, or choose another folder with --state$/m);
    await remount("rw");
    assert.equal((await folder.up()).code, 0);
    // The kernel allows it only when nobody writes: logs are open, so this machine is one whose runner was killed.
    await folder.running.kill("runner");
    await runCommand({ argv: ["mount", "--bind", folder.state, folder.state] });
    await runCommand({ argv: ["mount", "-o", "remount,bind,ro", folder.state] });
    const unclean = await folder.running.down();
    await runCommand({ argv: ["umount", folder.state] });
    assert.equal(unclean.code, 3, unclean.stderr);
    assert.match(unclean.stderr, /the file system is read-only/);
    assert.equal((await folder.running.down()).code, 0);
    await assertNothingLeft(folder);
  });
});

/** A folder with a tool that fails with these words, to be first in PATH. */
async function brokenTool(
  name: string,
  words: string,
): Promise<AsyncDisposable & { readonly env: { readonly PATH: string } }> {
  const folder = await mkdtemp(join(tmpdir(), "tools-"));
  await chmod(folder, 0o755);
  await writeFile(join(folder, name), `#!/bin/sh\ncat >/dev/null\necho "${words}" >&2\nexit 2\n`, { mode: 0o755 });
  return {
    env: { PATH: `${folder}:${process.env.PATH}` },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}

test("a kernel without bridges or namespaces is a sentence, and nothing is half made", { skip }, async () => {
  await using folder = await meshFolder(WEB_SPEC);
  const up = (env: Readonly<Record<string, string>>) =>
    mizzen(["up", folder.path, "--detach", "--state", folder.state], env);
  await using noBridge = await brokenTool("ip", "RTNETLINK answers: Operation not supported");
  const bridge = await up(noBridge.env);
  assert.equal(bridge.code, 3, bridge.stderr);
  assert.match(
    bridge.stderr,
    /^mizzen: Cannot make the network of the mesh: the kernel refuses; .*modprobe.*Operation not supported/m,
  );
  await assertNothingLeft(folder);
  await using noNamespace = await brokenTool("unshare", "unshare failed: Operation not permitted");
  const namespace = await up(noNamespace.env);
  assert.equal(namespace.code, 3, namespace.stderr);
  assert.match(namespace.stderr, /^mizzen: Cannot make a network namespace: .*run it privileged/m);
  await assertNothingLeft(folder);
});

test("a half-made namespace and a killed runner are cleaned by the next up", { skip }, async () => {
  await using folder = await meshFolder(WEB_SPEC);
  assert.equal((await folder.up()).code, 0);
  const { id } = await folder.running.status();
  await folder.running.kill("runner");
  await writeFile(`/run/netns/mizzen-${id}-half.made`, "");
  const again = await folder.up();
  assert.equal(again.code, 0, again.stderr);
  assert.equal((await folder.running.curl("plain", "http://web:8000/")).body, "web web");
  assert.equal((await folder.running.down()).code, 0);
  await assertNothingLeft(folder);
});
