/** Runs that cannot succeed, or not at once: what they say, and that they leave nothing behind. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { createLogger, SILENT } from "#lib/log/log.ts";
import { NetworkNamespace } from "../../test/support/network-namespace.ts";
import { runCapture } from "./run.ts";
import type { GivenOptions } from "./settings/options.ts";

const AGENT = join(import.meta.dirname, "../bin/pilot-agent.ts");
const env = { PATH: process.env.PATH };
const skip = process.getuid?.() === 0 ? false : "needs root to make network namespaces";

let opened = 0;

function open(): Promise<NetworkNamespace> {
  return NetworkNamespace.open(`faults-${process.pid}-${opened++}`, ["10.9.0.1/24"]);
}

const REFUSED: readonly (readonly [string, GivenOptions, RegExp])[] = [
  ["a wrong range", { outboundRanges: "10.0.0.0/33" }, /--istio-service-cidr .* not "10\.0\.0\.0\/33"/],
  ["a port out of range", { inboundPort: "65536" }, /--inbound-capture-port .* not "65536"/],
  ["a port included and excluded", { inboundPorts: "80", inboundPortsExcluded: "80" }, /both list "80"/],
  ["an unknown mode", { mode: "NONE" }, /--istio-inbound-interception-mode .* not "NONE"/],
];

describe("faults", { skip }, () => {
  for (const [name, given, message] of REFUSED) {
    test(`${name} is refused before anything is changed`, async () => {
      await using pod = await open();
      const before = await pod.state();
      const run = runCapture({ given: { ...given, networkNamespace: pod.path }, env, log: SILENT });
      await assert.rejects(run, { code: "CAPTURE_OPTIONS", message });
      assert.equal(await pod.state(), before);
    });
  }

  for (const flag of ["--force-iptables-binary=nft", "--force-iptables-binary=legacy", "--native-nftables"]) {
    test(`without NET_ADMIN ${flag} ends with code 1 and says so`, async () => {
      await using pod = await open();
      const before = await pod.state();
      const agent = [process.execPath, AGENT, "istio-iptables", "-b", "*", "-i", "*", flag];
      const run = pod.run(["setpriv", "--bounding-set=-net_admin,-net_raw", ...agent]);
      await assert.rejects(run, (error: Error & { code?: number; stdout?: string }) => {
        assert.equal(error.code, 1);
        assert.match(error.stdout ?? "", /\terror\tCannot .*: needs root or the capabilities NET_ADMIN and NET_RAW/);
        return true;
      });
      assert.equal(await pod.state(), before);
    });
  }

  test("a lock that another process holds is waited for", async () => {
    await using pod = await open();
    const folder = await mkdtemp(join(tmpdir(), "faults-"));
    const file = join(folder, "xtables.lock");
    const holder = spawn("flock", [file, "sh", "-c", "echo held; cat"], { stdio: ["pipe", "pipe", "inherit"] });
    try {
      await once(holder.stdout, "data");
      const restoring = Promise.withResolvers<void>();
      const log = createLogger({
        write: (line) => {
          if (line.includes("Running iptables restore")) restoring.resolve();
        },
        json: false,
      });
      const given = { networkNamespace: pod.path, forcedBinary: "legacy", outboundRanges: "*" };
      const run = runCapture({ given, env: { ...env, XTABLES_LOCKFILE: file }, log });
      await Promise.race([restoring.promise, run]);
      assert.doesNotMatch((await pod.run("iptables-legacy-save")).stdout, /ISTIO_/);
      holder.stdin.end();
      await run;
      assert.match((await pod.run("iptables-legacy-save")).stdout, /-A OUTPUT -j ISTIO_OUTPUT/);
    } finally {
      holder.kill();
      await rm(folder, { recursive: true });
    }
  });

  test("a namespace that does not exist is named", async () => {
    const run = runCapture({ given: { networkNamespace: "/run/netns/no-such-namespace" }, env, log: SILENT });
    await assert.rejects(run, {
      code: "CAPTURE_FAILED",
      message: /^Cannot enter the network namespace "\/run\/netns\/no-such/,
    });
  });
});
