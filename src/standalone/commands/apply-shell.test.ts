/** `apply`, `delete` and `shell`, as people use them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test from "node:test";
import { meshFolder, WEB_SPEC } from "../../../test/support/mesh-folder.ts";
import { type Finished, MIZZEN, meshUnavailable } from "../../../test/support/mesh-run.ts";

const FAULT = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web}
spec:
  hosts: [web]
  http: [{fault: {abort: {httpStatus: 418, percentage: {value: 100}}}, route: [{destination: {host: web}}]}]
`;
const POLICY = FAULT.replace("networking", "security")
  .replace("VirtualService", "PeerAuthentication")
  .replace(/spec:[\s\S]*/, "spec: {mtls: {mode: PERMISSIVE}}\n");

/** Runs a command with something to read. */
async function withInput(argv: readonly string[], input: string): Promise<Finished> {
  const [program = "", ...args] = argv;
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise<number>((resolve) => child.once("close", (code) => resolve(code ?? 1)));
  child.stdin.end(input);
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}

test("apply, delete and shell", { skip: meshUnavailable() }, async (t) => {
  await using folder = await meshFolder(`${WEB_SPEC}  - {name: caller, command: [sleep, infinity]}\n`);
  const started = await folder.up();
  assert.equal(started.code, 0, started.stderr);
  const place = join(folder.root, "more");
  await mkdir(place);
  const file = async (name: string, content: string) => {
    await writeFile(join(place, name), content);
    return join(place, name);
  };

  await t.test("apply takes files, folders and its input", async () => {
    await file("fault.yaml", FAULT);
    await file("policy.yml", POLICY);
    await file("notes.txt", "no YAML: [");
    const both = await folder.mizzen("apply", place);
    assert.equal(
      both.stdout,
      "VirtualService/default/web created\nPeerAuthentication/default/web created\n",
      both.stderr,
    );
    assert.equal((await folder.running.curl("caller", "http://web:8000/")).status, 418);
    const again = await withInput([MIZZEN, "apply", "--state", folder.state, "-"], FAULT.replace("418", "451"));
    assert.equal(again.stdout, "VirtualService/default/web changed\n", again.stderr);
    const gone = await folder.mizzen("delete", place);
    assert.match(gone.stdout, /^VirtualService\/default\/web deleted$/m);
    assert.equal((await folder.running.curl("caller", "http://web:8000/")).status, 200);
  });

  const WRONG: readonly (readonly [string, string, RegExp])[] = [
    [
      "a wrong field",
      FAULT.replace("httpStatus: 418", "httpStatus: no"),
      /wrong\.yaml:6: VirtualService\/default\/web: spec\.http/,
    ],
    ["no YAML", "a: [", /wrong\.yaml:1: /],
    ["no object", "# nothing\n", /There is no object in ".*wrong\.yaml"/],
    ["an object without a kind", "a: 1\n", /wrong\.yaml:1: is not an object/],
    [
      "a kind that has no effect",
      "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
      /kind "Deployment" has no effect yet/,
    ],
    [
      "an object of the mesh's files",
      "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 1}]}\n",
      /Cannot apply Service\/default\/web: it is in .*service\.yaml:2/,
    ],
  ];
  for (const [what, content, expected] of WRONG) {
    await t.test(`apply refuses ${what}`, async () => {
      const { code, stderr } = await folder.mizzen("apply", await file("wrong.yaml", content));
      assert.equal(code, 2, stderr);
      assert.match(stderr, expected);
    });
  }

  await t.test("what is not there is neither applied nor deleted", async () => {
    const missing = await folder.mizzen("apply", join(place, "gone.yaml"));
    assert.deepEqual([missing.code, /^mizzen: Cannot read ".*gone\.yaml"/.test(missing.stderr)], [2, true]);
    const never = await folder.mizzen("delete", join(place, "fault.yaml"));
    assert.deepEqual([never.code, /it was not applied; nothing was$/m.test(never.stderr)], [2, true], never.stderr);
    assert.equal((await folder.mizzen("apply")).code, 2);
  });

  await t.test("shell runs what it reads inside, and passes the exit code on", async () => {
    const shell = [MIZZEN, "shell", "--state", folder.state, "web"];
    const { uid } = (await folder.running.member("web")).shell.account;
    const result = await withInput(shell, "id -u\nhostname\necho $POD_NAME\nexit 7\n");
    assert.deepEqual([result.code, result.stdout], [7, `${uid}\nweb\nweb\n`], result.stderr);
    assert.equal((await folder.mizzen("shell", "nobody-there")).code, 2);
  });

  await t.test("shell at a terminal has a prompt that says where one is", async () => {
    const line = `${MIZZEN} shell --state ${folder.state} web`;
    const { stdout } = await withInput(["script", "-qec", line, "/dev/null"], "echo $((6 * 7))\nexit\n");
    assert.match(stdout, /web \$ echo/);
    assert.match(stdout, /[\r\n]42\r\n/);
  });
});
