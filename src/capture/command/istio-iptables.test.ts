import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CommanderError } from "commander";
import type { Env } from "#lib/env/env-table.ts";
import { istioCleanIptablesCommand, istioIptablesCommand } from "./istio-iptables.ts";

/** Lines that a dry run would have executed. */
async function dryRun(args: readonly string[], env: Env = {}, make = istioIptablesCommand): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "dry-run-"));
  const file = join(folder, "lines");
  try {
    const command = make({ env: { PATH: process.env.PATH, DRY_RUN_FILE_PATH: file, ...env }, commandLine: [] });
    await command.parseAsync([...args, "--dry-run", "--log_output_level=default:none"], { from: "user" });
    return (await readFile(file, "utf8")).trimEnd().split("\n");
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("istio-iptables takes the flags of an init container", async () => {
  const flags = "-p 15001 -z 15006 -u 1337 -m REDIRECT -i * -b * -d 15090,15021,15020".split(" ");
  const lines = await dryRun([...flags, "-x", ""]);
  assert.deepEqual(lines.slice(0, 3), ["iptables-save", "ip6tables-save", "* nat"]);
  assert.ok(lines.includes("-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN"));
  assert.ok(lines.includes("-A ISTIO_OUTPUT -j ISTIO_REDIRECT"));
});

test("istio-iptables takes long flags, Go's spelling of values, and variables", async () => {
  const args = ["--envoy-port=16001", "-z=16006", "--redirect-dns=true", "--capture-all-dns", "--drop-invalid=false"];
  const lines = await dryRun(args, { ISTIO_INBOUND_PORTS: "8080" });
  assert.ok(lines.includes("-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 16001"));
  assert.ok(lines.includes("-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 16006"));
  assert.ok(lines.includes("-A ISTIO_INBOUND -p tcp --dport 8080 -j ISTIO_IN_REDIRECT"));
  assert.ok(lines.includes("-A ISTIO_OUTPUT_DNS -p udp --dport 53 -j REDIRECT --to-port 15053"));
  assert.ok(!lines.includes("* mangle"));
});

test("istio-iptables --native-nftables gives nft one transaction", async () => {
  const lines = await dryRun(["-b", "*", "--native-nftables"]);
  assert.deepEqual(lines.slice(0, 2), ["add table inet istio-proxy-nat", "flush table inet istio-proxy-nat"]);
  assert.ok(lines.includes("add rule inet istio-proxy-nat prerouting meta l4proto tcp counter jump istio-inbound"));
  assert.ok(!lines.some((line) => line.includes("iptables")));
});

test("istio-iptables --restore-format=false shows single commands", async () => {
  const shown = async (...args: string[]) => {
    const written: string[] = [];
    const command = istioIptablesCommand({
      env: { PATH: process.env.PATH },
      commandLine: [],
      write: (line) => written.push(line),
    });
    await command.parseAsync([...args, "--dry-run"], { from: "user" });
    return written.join("");
  };
  assert.match(await shown("-f=false"), /\n-t nat -N ISTIO_INBOUND\n(.*\n)*-t nat -A OUTPUT -j ISTIO_OUTPUT\n/);
  assert.match(await shown(), /\n\* nat\n-N ISTIO_INBOUND\n/);
});

test("istio-clean-iptables shows what it would remove", async () => {
  const lines = await dryRun(["-b", "80"], {}, istioCleanIptablesCommand);
  assert.deepEqual(lines.slice(0, 2), ["iptables-save", "ip6tables-save"]);
  assert.ok(lines.includes("iptables -t nat -D PREROUTING -p tcp -j ISTIO_INBOUND"));
  assert.ok(lines.includes("iptables -t nat -X ISTIO_INBOUND"));
  assert.ok(!lines.some((line) => / -[ANI] /.test(line)));
  const nft = await dryRun(["--native-nftables"], {}, istioCleanIptablesCommand);
  assert.deepEqual(nft.slice(0, 2), ["add table inet istio-proxy-nat", "delete table inet istio-proxy-nat"]);
});

test("istio-iptables refuses flags that do not exist or have no sensible value", async () => {
  const parse = (...args: string[]) =>
    istioIptablesCommand({ env: {}, commandLine: [] })
      .exitOverride()
      .configureOutput({ writeErr: () => undefined })
      .parseAsync(args, { from: "user" });
  await assert.rejects(parse("--no-such-flag"), CommanderError);
  await assert.rejects(parse("--dry-run=maybe"), CommanderError);
  await assert.rejects(parse("-p"), CommanderError);
});

test("istio-iptables ends with code 1 and a sentence when an option is wrong", async () => {
  const written: string[] = [];
  const command = istioIptablesCommand({ env: {}, commandLine: [], write: (line) => written.push(line) });
  await command.parseAsync(["-p", "http", "--dry-run"], { from: "user" });
  const code = process.exitCode;
  process.exitCode = 0;
  assert.equal(code, 1);
  assert.match(
    written.join(""),
    /\terror\tCannot set up traffic capture: --envoy-port must be a number .* not "http"\n/,
  );
});

test("istio-iptables prints its environment and its settings", async () => {
  const written: string[] = [];
  const command = istioIptablesCommand({
    env: { ISTIO_SERVICE_CIDR: "10.0.0.0/8" },
    commandLine: [],
    write: (line) => written.push(line),
  });
  await command.parseAsync(["-b", "8080,", "-u", "3,4", "--dry-run"], { from: "user" });
  const [environment = "", config = ""] = written.map((block) => block.replace(/^.*\t/, "")).slice(1);
  assert.match(environment, /^Istio iptables environment:\nEnvironment:\n------------\nENVOY_PORT=\n/);
  assert.match(environment, /\nISTIO_SERVICE_CIDR=10\.0\.0\.0\/8\n/);
  assert.match(config, /^Istio config:\nVariables:\n----------\nPROXY_PORT=15001\n/);
  assert.match(config, /\nPROXY_UID=3,4\nPROXY_GID=3,4\n/);
  assert.match(config, /\nINBOUND_PORTS_INCLUDE=8080,\n/);
  assert.match(config, /\nDNS_SERVERS=\[\],\[\]\n/);
});
