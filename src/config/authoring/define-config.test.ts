import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { readDocuments } from "#lib/yaml/read.ts";
import { checkConfig, defineConfig, toYaml } from "./define-config.ts";

const config = defineConfig(
  {
    apiVersion: "networking.istio.io/v1",
    kind: "VirtualService",
    metadata: { name: "reviews", namespace: "default" },
    spec: { hosts: ["reviews"], http: [{ timeout: "5s", route: [{ destination: { host: "reviews" } }] }] },
  },
  {
    apiVersion: "security.istio.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: "default" },
    spec: { mtls: { mode: "STRICT" } },
  },
);

describe("mizzen/config", () => {
  test("toYaml() writes documents that read back as the objects", () => {
    assert.deepEqual(
      readDocuments(toYaml(config)).map(({ value }) => value),
      config,
    );
    assert.deepEqual(checkConfig(config), []);
  });

  test("checkConfig() says what no type can say", () => {
    const [first] = config;
    assert.ok(first?.kind === "VirtualService");
    const spec = { ...first.spec, hosts: ["a b"], http: [{ timeout: "5x" as "5s" }] };
    const problems = checkConfig(defineConfig({ ...first, spec }));
    assert.equal(problems[0]?.object, "VirtualService/default/reviews");
    assert.ok(problems.some(({ field }) => field === "spec.http[0].timeout"));
  });

  test("the compiler takes what is right and refuses what is not", () => {
    const specs = {
      good: `{ hosts: ["a"], http: [{ timeout: "1m30s", retries: { attempts: 3 }, route: [] }] }`,
      misspelt: `{ hosts: ["a"], htp: [] }`,
      noList: `{ hosts: "a" }`,
      noDuration: `{ hosts: ["a"], http: [{ timeout: 5 }] }`,
      wrongDuration: `{ hosts: ["a"], http: [{ timeout: "soon" }] }`,
      missing: `{ hosts: ["a"], http: [{ route: [{}] }] }`,
      wrongEnum: `{ hosts: ["a"], http: [{ redirect: { derivePort: "FROM_NOWHERE" } }] }`,
    };
    const { good: _, ...bad } = specs;
    assert.deepEqual(refused(specs), Object.keys(bad).sort());
  });
});

/** Names of the specs that do not compile. */
function refused(specs: Readonly<Record<string, string>>): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-config-"));
  const api = JSON.stringify(join(import.meta.dirname, "api.ts"));
  const head = `{ apiVersion: "networking.istio.io/v1", kind: "VirtualService", metadata: { name: "a" }`;
  try {
    const files = Object.entries(specs).map(([name, spec]) => {
      const file = join(folder, `${name}.ts`);
      writeFileSync(file, `import { defineConfig } from ${api};\ndefineConfig(${head}, spec: ${spec} });\n`);
      return file;
    });
    const tsc = join(import.meta.dirname, "../../../node_modules/.bin/tsc");
    const flags = ["--ignoreConfig", "--noEmit", "--strict", "--module", "nodenext", "--allowImportingTsExtensions"];
    const { stdout } = spawnSync(tsc, [...flags, ...files], { encoding: "utf8", cwd: folder });
    const errors = stdout.split("\n").filter((line) => line.includes("error TS"));
    return [...new Set(errors.map((line) => /(\w+)\.ts\(/.exec(line)?.[1] ?? line))].sort();
  } finally {
    rmSync(folder, { recursive: true });
  }
}
