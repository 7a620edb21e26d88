import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Backoff } from "#lib/async/backoff.ts";
import { createLogger } from "#lib/log/log.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { runOutputFiles } from "./output-files.ts";
import type { Secret, SecretSource } from "./secret.ts";

type Context = { after(fn: () => void | Promise<void>): void };

const FILES = ["cert-chain.pem", "key.pem", "root-cert.pem"];
const certificate = (text: string): Secret => ({ name: "default", chain: `chain ${text}`, privateKey: `key ${text}` });
const roots = (text: string): Secret => ({ name: "ROOTCA", roots: `roots ${text}` });

function setUp(t: Context, folder: string, mode = 0o600) {
  const listeners = new Map<string, (secret: Secret) => void>();
  const source: SecretSource = {
    owns: () => true,
    watch: (name, onSecret) => {
      listeners.set(name, onSecret);
      return () => void listeners.delete(name);
    },
  };
  const lines: string[] = [];
  const log = createLogger({ write: (line) => lines.push(line) });
  const stop = new AbortController();
  const backoff = new Backoff({ initialMs: 5, maxMs: 20 });
  const running = runOutputFiles({ folder, mode, source, log, backoff }, stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  const send = (secret: Secret) => listeners.get(secret.name)?.(secret);
  const read = (file: string) => (existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8") : "");
  return { send, read, lines, stop, running, listeners };
}

test("runOutputFiles() writes key, chain and roots where nobody else can read them, and no more than changed", async (t) => {
  const folder = join(temporaryFolder(t), "a", "certs");
  const { send, read } = setUp(t, folder);
  send(certificate("1"));
  send(roots("1"));
  await eventually("the files", () => FILES.every((file) => read(file) !== ""));
  assert.deepEqual(FILES.map(read), ["chain 1", "key 1", "roots 1"]);
  for (const file of FILES) assert.equal(statSync(join(folder, file)).mode & 0o777, 0o600);
  const before = statSync(join(folder, "root-cert.pem")).ino;
  send(certificate("2"));
  send(roots("1"));
  await eventually("the new chain", () => read("cert-chain.pem") === "chain 2");
  assert.equal(read("key.pem"), "key 2");
  assert.equal(statSync(join(folder, "root-cert.pem")).ino, before);
  assert.deepEqual(readdirSync(folder).sort(), FILES);
});

test("runOutputFiles() lets the other containers of a pod read", async (t) => {
  const folder = temporaryFolder(t);
  const { send, read } = setUp(t, folder, 0o644);
  send(certificate("1"));
  await eventually("the chain", () => read("cert-chain.pem") !== "");
  assert.equal(statSync(join(folder, "key.pem")).mode & 0o777, 0o644);
});

test("runOutputFiles() ends with the signal and stops listening", async (t) => {
  const { stop, running, listeners } = setUp(t, temporaryFolder(t));
  assert.equal(listeners.size, 2);
  stop.abort();
  await running;
  assert.equal(listeners.size, 0);
});

test("runOutputFiles() says where it cannot write, and does when it can", async (t) => {
  const folder = join(temporaryFolder(t), "certs");
  writeFileSync(folder, "in the way");
  const { send, read, lines } = setUp(t, folder);
  send(certificate("1"));
  await eventually("an error", () => lines.length > 0);
  assert.match(lines[0] ?? "", /error\terror when output the resource: .*certs: (EEXIST|ENOTDIR)/);
  rmSync(folder);
  await eventually("the chain", () => read("cert-chain.pem") === "chain 1");
});

/** A disk of its own, in a mount namespace that ends with its process. */
async function smallDisk(t: Context): Promise<string> {
  const folder = temporaryFolder(t);
  chmodSync(folder, 0o755);
  const script = 'mount -t tmpfs -o size=64k none "$0" && echo mounted && exec sleep 600';
  const child = spawn("unshare", ["--mount", "--propagation", "private", "sh", "-c", script, folder]);
  t.after(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  await once(child.stdout, "data");
  return `/proc/${child.pid}/root${folder}`;
}

const whereRoot = { skip: process.getuid?.() === 0 ? false : "needs root to mount a small disk" };

test(
  "runOutputFiles() keeps the old files whole on a full disk, and goes on when there is room",
  whereRoot,
  async (t) => {
    const folder = await smallDisk(t);
    const { send, read, lines } = setUp(t, folder);
    send(certificate("1"));
    send(roots("1"));
    await eventually("the files", () => FILES.every((file) => read(file) !== ""));
    const filler = join(folder, "filler");
    try {
      writeFileSync(filler, Buffer.alloc(100_000));
    } catch {
      // as much as there is room for
    }
    send(certificate("2"));
    await eventually("an error", () => lines.some((line) => line.includes("ENOSPC")));
    assert.deepEqual(FILES.map(read), ["chain 1", "key 1", "roots 1"]);
    rmSync(filler);
    await eventually("the new chain", () => read("cert-chain.pem") === "chain 2");
    assert.equal(read("key.pem"), "key 2");
    assert.deepEqual(readdirSync(folder).sort(), FILES);
  },
);
