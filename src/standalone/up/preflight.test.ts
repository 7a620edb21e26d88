import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { nodeFlags, scriptFlags } from "../../../test/support/program-script.ts";
import { checkMachine, placePrograms } from "./preflight.ts";

test("checkMachine() says that root is missing and how to get it", async () => {
  await assert.rejects(checkMachine({ uid: 1000, path: "/usr/bin" }), {
    code: "NOT_ROOT",
    message: /without root: it makes network namespaces and capture rules; run it with sudo$/,
  });
});

test("checkMachine() names a tool that is missing and the package that has it", async () => {
  await assert.rejects(checkMachine({ uid: 0, path: "/nowhere" }), {
    code: "TOOL_MISSING",
    message: 'Cannot start a mesh without "ip": install it (Debian: apt-get install iproute2)',
  });
});

test("placePrograms() says what to run when a bundle or Envoy is not there", async () => {
  const here = import.meta.filename;
  const installed = { node: process.execPath, envoy: here, agentBundle: here, discoveryBundle: "/nowhere/x.cjs" };
  await assert.rejects(placePrograms(installed, "/nowhere"), {
    code: "NOT_BUILT",
    message: /x\.cjs": run "make build"/,
  });
  await assert.rejects(placePrograms({ ...installed, envoy: "/nowhere/envoy" }, "/nowhere"), { code: "ENVOY_MISSING" });
});

test("placePrograms() runs agent and control plane with the flags of bin/", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "programs-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = (name: string) => {
    const path = join(folder, name);
    writeFileSync(path, "");
    return path;
  };
  file("launcher.cjs");
  const bundles = { agentBundle: file("pilot-agent.cjs"), discoveryBundle: file("pilot-discovery.cjs") };
  const installed = { node: process.execPath, envoy: process.execPath, ...bundles };
  const programs = await placePrograms(installed, join(folder, "run", "programs"));
  assert.deepEqual(nodeFlags(programs.agent.join(" ")), scriptFlags("pilot-agent"));
  assert.deepEqual(nodeFlags(programs.discovery.join(" ")), scriptFlags("pilot-discovery"));
});
