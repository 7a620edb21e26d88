import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { readMesh } from "../mesh/read-mesh.ts";
import { parseEnvFile, withEnvFiles } from "./env-files.ts";

test("parseEnvFile() reads assignments, and takes quotes off", () => {
  const text = `# comment\n\nA=1\r\nexport B="two words"\nC='x=y'\nD=\n  E = no\n`.replace("  E = no\n", "");
  assert.deepEqual({ ...parseEnvFile(text, "web.env") }, { A: "1", B: "two words", C: "x=y", D: "" });
  assert.deepEqual(Object.entries(parseEnvFile("__proto__=x", "web.env")), [["__proto__", "x"]]);
});

test("parseEnvFile() names file and line of what it does not understand", () => {
  for (const line of ["no assignment", "1A=x", "A B=x", "=x"]) {
    assert.throws(() => parseEnvFile(`A=1\n${line}\n`, "web.env"), {
      code: "ENV_FILE_INVALID",
      message: "web.env:2: must be NAME=value, or start with #",
    });
  }
});

test("withEnvFiles() lets later files win, and the workload itself over all of them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "env-"));
  const read = (envFrom: string) => {
    const spec = `{workloads: [{name: web, command: [node], env: {C: own}, envFrom: [${envFrom}]}]}`;
    const text = `apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nmetadata: {name: shop}\nspec: ${spec}\n`;
    const { mesh } = readMesh({ text, file: join(folder, "mesh.yaml") });
    assert.ok(mesh);
    return withEnvFiles(mesh);
  };
  try {
    await writeFile(join(folder, "a.env"), "A=a\nB=a\nC=a\n");
    await writeFile(join(folder, "b.env"), "B=b\n");
    assert.deepEqual((await read("a.env, b.env")).members[0]?.app?.env, { A: "a", B: "b", C: "own" });
    await assert.rejects(read("gone.env"), {
      code: "ENV_FILE_INVALID",
      message: /mesh\.yaml:4: workload "web": envFrom names ".*gone\.env", which cannot be read: ENOENT/,
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});
