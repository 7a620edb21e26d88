import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { EXECUTE, isReadableTree, obstacle, permits, READ, usableBy } from "../host/readable.ts";
import { NOBODY } from "../plan/enter.ts";
import { commandProblem } from "./find-command.ts";
import { placeFile, placeWorkingFolder } from "./runtime-files.ts";

const STRANGER = { uid: 4711, gid: 4711, home: "/" };

interface Fixture extends AsyncDisposable {
  /** Entered by its owner alone. */
  readonly closed: string;
  readonly open: string;
  readonly runtime: string;
}

async function fixture(): Promise<Fixture> {
  const root = await mkdtemp(join(tmpdir(), "runtime-"));
  await chmod(root, 0o755);
  const [closed, open, runtime] = [join(root, "closed"), join(root, "open"), join(root, "state", "runtime")];
  await mkdir(closed, { mode: 0o700 });
  await mkdir(open);
  await chmod(open, 0o755);
  return { closed, open, runtime, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

async function program(folder: string, mode: number): Promise<string> {
  const file = join(folder, "program");
  await writeFile(file, "#!/bin/sh\necho hello\n");
  await chmod(file, mode);
  return file;
}

/** Whatever the umask. */
async function emptyFile(file: string, mode: number): Promise<void> {
  await writeFile(file, "");
  await chmod(file, mode);
}

test("permits() looks at the owner's, the group's or the others' rights, and at one of them alone", () => {
  const file = { uid: 10, gid: 20, mode: 0o750 };
  assert.ok(permits(file, { uid: 10, gid: 1, home: "" }, READ | EXECUTE));
  assert.ok(permits(file, { uid: 11, gid: 20, home: "" }, READ | EXECUTE));
  assert.ok(!permits(file, { uid: 11, gid: 21, home: "" }, READ));
  assert.ok(!permits({ ...file, mode: 0o077 }, { uid: 10, gid: 20, home: "" }, READ));
  assert.ok(permits({ ...file, mode: 0 }, { uid: 0, gid: 0, home: "" }, READ));
});

test("obstacle() names the folder that keeps an account out", async () => {
  await using dir = await fixture();
  const file = await program(dir.closed, 0o755);
  assert.equal(await obstacle(file, STRANGER, READ), dir.closed);
  assert.equal(await obstacle(await program(dir.open, 0o700), STRANGER, READ), join(dir.open, "program"));
});

test("placeFile() lets everybody enter the folders around its copy, and changes no other right of those that were there", async () => {
  await using dir = await fixture();
  const around = [join(dir.open, "shared"), join(dir.open, "shared", "own")] as const;
  await mkdir(around[1], { recursive: true });
  await chmod(around[0], 0o1777);
  await chmod(around[1], 0o700);
  const runtime = join(around[1], "runtime");
  await placeFile(await program(dir.closed, 0o700), READ, runtime);
  await placeFile(await program(dir.closed, 0o700), READ, around[1]);
  const modes = await Promise.all([...around, runtime].map(async (folder) => (await stat(folder)).mode & 0o7777));
  assert.deepEqual(modes, [0o1777, 0o711, 0o711]);
});

test("placeFile() leaves a program where it is when everybody can run it there", async () => {
  await using dir = await fixture();
  const file = await program(dir.open, 0o755);
  await symlink(file, join(dir.closed, "link"));
  assert.equal(await placeFile(join(dir.closed, "link"), READ | EXECUTE, dir.runtime), file);
});

test("placeFile() links a program out of a folder that is closed, once", async () => {
  await using dir = await fixture();
  const file = await program(dir.closed, 0o755);
  const placed = await placeFile(file, READ | EXECUTE, dir.runtime);
  assert.ok(await usableBy(placed, [STRANGER], READ | EXECUTE));
  assert.equal((await stat(placed)).ino, (await stat(file)).ino);
  assert.equal(await placeFile(file, READ | EXECUTE, dir.runtime), placed);
});

test("placeFile() copies a program that others may not run, and leaves the original's mode alone", async () => {
  await using dir = await fixture();
  const file = await program(dir.closed, 0o700);
  const placed = await placeFile(file, READ | EXECUTE, dir.runtime);
  assert.ok(await usableBy(placed, [STRANGER], READ | EXECUTE));
  assert.equal((await stat(file)).mode & 0o777, 0o700);
});

test("placeWorkingFolder() copies what the account cannot read, as it is now", async () => {
  await using dir = await fixture();
  const folder = join(dir.closed, "app");
  await mkdir(join(folder, "lib"), { recursive: true, mode: 0o700 });
  await mkdir(join(folder, ".git"));
  await writeFile(join(folder, "lib/a.ts"), "1", { mode: 0o600 });
  const copy = await placeWorkingFolder({ path: folder, accounts: [STRANGER], runtimeFolder: dir.runtime });
  assert.notEqual(copy, folder);
  assert.ok(await usableBy(join(copy, "lib/a.ts"), [STRANGER], READ));
  await assert.rejects(stat(join(copy, ".git")), { code: "ENOENT" });
  await writeFile(join(folder, "lib/a.ts"), "2");
  assert.equal(await placeWorkingFolder({ path: folder, accounts: [STRANGER], runtimeFolder: dir.runtime }), copy);
  assert.equal(await readFile(join(copy, "lib/a.ts"), "utf8"), "2");
});

test("placeWorkingFolder() leaves a folder that all its users can enter", async () => {
  await using dir = await fixture();
  // One file that others may not read is no reason to copy, say, the root folder of the machine.
  await emptyFile(join(dir.open, "a.ts"), 0o600);
  assert.equal(
    await placeWorkingFolder({ path: dir.open, accounts: [STRANGER, NOBODY], runtimeFolder: dir.runtime }),
    dir.open,
  );
});

test("placeWorkingFolder() refuses to copy what is too large to be an app", async () => {
  await using dir = await fixture();
  const path = join(dir.closed, "wide");
  await mkdir(path);
  for (const name of ["a", "b", "c"]) await writeFile(join(path, name), "");
  const input = { path, accounts: [STRANGER], runtimeFolder: dir.runtime };
  await assert.rejects(placeWorkingFolder({ ...input, maxFiles: 3 }), { code: "WORKING_DIR_TOO_LARGE" });
  assert.notEqual(await placeWorkingFolder({ ...input, maxFiles: 4 }), path);
});

test("isReadableTree() looks at every file below, but not into what is large", async () => {
  await using dir = await fixture();
  await mkdir(join(dir.open, "deep/node_modules"), { recursive: true });
  await chmod(join(dir.open, "deep"), 0o755);
  const file = join(dir.open, "deep/a.yaml");
  await emptyFile(file, 0o644);
  await emptyFile(join(dir.open, "deep/node_modules/b"), 0o600);
  assert.ok(await isReadableTree(dir.open, STRANGER));
  assert.ok(await isReadableTree(file, STRANGER));
  await chmod(file, 0o600);
  assert.ok(!(await isReadableTree(dir.open, STRANGER)));
  assert.ok(!(await isReadableTree(file, STRANGER)));
});

test("commandProblem() finds a command in PATH, or beside the app, and says why not", async () => {
  await using dir = await fixture();
  await program(dir.open, 0o755);
  const search = { workingDir: dir.open, path: `/nowhere:${dir.open}`, account: NOBODY };
  assert.equal(await commandProblem({ ...search, command: "program" }), undefined);
  assert.equal(await commandProblem({ ...search, command: "./program" }), undefined);
  assert.match(
    (await commandProblem({ ...search, command: "progam" })) ?? "",
    /^command "progam" is not found in \/nowhere:/,
  );
  assert.match((await commandProblem({ ...search, command: "./progam" })) ?? "", /is not found as ".*open\/progam"/);
  await chmod(join(dir.open, "program"), 0o644);
  assert.match((await commandProblem({ ...search, command: "./program" })) ?? "", /may not be executed by uid 65534/);
  assert.match((await commandProblem({ ...search, command: "./" })) ?? "", /is not found/);
});
