import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { certificateRequest } from "#lib/pki/csr.ts";
import { eventually, signedChain, temporaryFolder, testRoot } from "../../../test/support/fake-control-plane.ts";
import { agentMetrics } from "../metrics.ts";
import { FileSecrets, type FileSecretsOptions, parseFileSecret } from "./file-secrets.ts";
import { generateKey } from "./key.ts";
import type { Secret } from "./secret.ts";

type Context = { after(fn: () => void): void };

const table = join(
  process.env.CONFORMANCE ?? join(import.meta.dirname, "../../../../shared/conformance"),
  "pkg/security/tables/TestSdsCertificateConfigFromResourceName.json",
);

test("parseFileSecret() reads names as Istio's table says", { skip: existsSync(table) ? false : `no ${table}` }, () => {
  for (const { name, resource, output, key, root } of JSON.parse(readFileSync(table, "utf8")).cases) {
    const secret = parseFileSecret(resource);
    assert.equal(secret !== undefined && "roots" in secret, root, name);
    assert.equal(secret !== undefined && "key" in secret, key, name);
    if (secret !== undefined && "roots" in secret) assert.equal(secret.roots, output.CaCertificatePath);
  }
});

test("parseFileSecret() reads a pair and nothing else", () => {
  assert.deepEqual(parseFileSecret("file-cert:/a.pem~/b.pem"), { certificate: "/a.pem", key: "/b.pem" });
  assert.equal(parseFileSecret("file-cert:/a.pem"), undefined);
  assert.equal(parseFileSecret("default"), undefined);
});

function setUp(t: Context, more: Partial<FileSecretsOptions> = {}) {
  const lines: string[] = [];
  const metrics = agentMetrics();
  const log = createLogger({ write: (line) => lines.push(line) });
  const options = { log, metrics, debounceMs: 5, systemRoots: undefined, resolve: (path: string) => path };
  const source = new FileSecrets({ ...options, ...more });
  const watch = (name: string) => {
    const received: Secret[] = [];
    const stop = source.watch(name, (secret) => received.push(secret));
    t.after(stop);
    const roots = () => received.map((secret) => ("roots" in secret ? secret.roots : "?"));
    return { received, roots, stop };
  };
  return { lines, metrics, source, watch };
}

const rootPem = async (organization: string) => (await testRoot(organization)).certificate.toString();

async function keyAndChain() {
  const key = await generateKey({ curve: "P-256", rsaBits: 2048, pkcs8: false });
  const csr = certificateRequest({ identity: "spiffe://x", ...key });
  return { key: key.pem, chain: (await signedChain(csr, await testRoot(), "spiffe://x")).join("") };
}

test("FileSecrets sends roots, and again when the file is written or replaced", async (t) => {
  const file = join(temporaryFolder(t), "roots.pem");
  const [one, two, three] = [await rootPem("one"), await rootPem("two"), await rootPem("three")];
  writeFileSync(file, one);
  const { roots } = setUp(t).watch(`file-root:${file}`);
  await eventually("the first", () => roots().length === 1);
  writeFileSync(`${file}.new`, two);
  renameSync(`${file}.new`, file);
  await eventually("the second", () => roots().length === 2);
  writeFileSync(file, three + one);
  await eventually("the third", () => roots().length === 3);
  assert.deepEqual(roots(), [one, two, three + one]);
});

test("FileSecrets follows the links by which Kubernetes changes mounted files", async (t) => {
  const folder = temporaryFolder(t);
  const publish = async (version: string) => {
    const { key, chain } = await keyAndChain();
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, "key.pem"), key);
    writeFileSync(join(folder, version, "cert.pem"), chain);
    symlinkSync(version, join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
    return chain;
  };
  const chains = [await publish("..2026_01")];
  for (const name of ["key.pem", "cert.pem"]) symlinkSync(`..data/${name}`, join(folder, name));
  const { watch, lines } = setUp(t);
  const { received } = watch(`file-cert:${join(folder, "cert.pem")}~${join(folder, "key.pem")}`);
  await eventually("the first", () => received.length === 1);
  for (const version of ["..2026_02", "..2026_03"]) {
    chains.push(await publish(version));
    await eventually(version, () => received.length === chains.length);
    rmSync(join(folder, version === "..2026_02" ? "..2026_01" : "..2026_02"), { recursive: true });
  }
  assert.deepEqual(
    received.map((secret) => "chain" in secret && secret.chain),
    chains,
  );
  assert.deepEqual(
    lines.filter((line) => line.includes("\twarn\t")),
    [],
  );
});

test("FileSecrets follows a folder behind a link, and one that is moved away and made again", async (t) => {
  const folder = temporaryFolder(t);
  const [one, two, three] = [await rootPem("one"), await rootPem("two"), await rootPem("three")];
  for (const [version, text] of [
    ["v1", one],
    ["v2", two],
  ] as const) {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, "roots.pem"), text);
  }
  symlinkSync("v1", join(folder, "current"));
  const { roots } = setUp(t).watch(`file-root:${join(folder, "current", "roots.pem")}`);
  await eventually("the first", () => roots().length === 1);
  unlinkSync(join(folder, "current"));
  symlinkSync("v2", join(folder, "current"));
  await eventually("the second", () => roots().length === 2);
  renameSync(join(folder, "v2"), join(folder, "old"));
  mkdirSync(join(folder, "v2"));
  writeFileSync(join(folder, "v2", "roots.pem"), three);
  await eventually("the third", () => roots().length === 3);
  assert.deepEqual(roots(), [one, two, three]);
});

test("FileSecrets waits for a file in a folder that is not there yet, and says so once", async (t) => {
  const file = join(temporaryFolder(t), "a", "b", "roots.pem");
  const { watch, lines, metrics } = setUp(t, { patienceMs: 20 });
  const { roots } = watch(`file-root:${file}`);
  await eventually("a warning", () => lines.length > 0);
  assert.match(lines[0] ?? "", /Secret file-root:.* cannot be sent: .*roots.pem cannot be read: ENOENT/);
  await eventually("a count", () => /istio_agent_num_file_secret_failures_total [1-9]/.test(metrics.text()));
  const late = await rootPem("late");
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, late);
  await eventually("the secret", () => roots().length === 1);
  assert.equal(lines.filter((line) => line.includes("cannot be sent")).length, 1);
});

test("FileSecrets keeps the last good certificate while files are half written or do not fit", async (t) => {
  const folder = temporaryFolder(t);
  const [certificate, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const [old, next] = [await keyAndChain(), await keyAndChain()];
  writeFileSync(certificate, old.chain);
  writeFileSync(keyFile, old.key);
  const { watch, lines, metrics } = setUp(t);
  const { received } = watch(`file-cert:${certificate}~${keyFile}`);
  await eventually("the old one", () => received.length === 1);
  writeFileSync(certificate, next.chain.slice(0, 200));
  await eventually("a warning about the half", () => lines.some((line) => line.includes("cannot be sent")));
  writeFileSync(certificate, next.chain);
  await eventually("a warning about the pair", () => lines.some((line) => line.includes("is not the key of")));
  assert.equal(received.length, 1);
  writeFileSync(keyFile, next.key);
  await eventually("the new one", () => received.length === 2);
  assert.deepEqual(received[1], {
    name: `file-cert:${certificate}~${keyFile}`,
    chain: next.chain,
    privateKey: next.key,
  });
  // Out of step for a moment is no failure.
  assert.match(metrics.text(), /istio_agent_num_file_secret_failures_total 0\n/);
});

test("FileSecrets names the file that cannot be used, and what is wrong with it", async (t) => {
  const folder = temporaryFolder(t);
  const [certificate, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const { key, chain } = await keyAndChain();
  const { watch, lines } = setUp(t);
  const told = (words: string) => eventually(words, () => lines.some((line) => line.includes(words)));
  writeFileSync(certificate, chain);
  writeFileSync(keyFile, "");
  watch(`file-cert:${certificate}~${keyFile}`);
  await told(`cannot be sent: ${keyFile} holds no private key: `);
  writeFileSync(keyFile, key);
  writeFileSync(certificate, "nothing");
  await told(`cannot be sent: ${certificate} holds no certificate: `);
  unlinkSync(keyFile);
  mkdirSync(keyFile);
  writeFileSync(certificate, chain);
  await told(`cannot be sent: ${keyFile} cannot be read: EISDIR`);
});

test("FileSecrets leaves out roots that cannot be parsed, and refuses files without any other", async (t) => {
  const file = join(temporaryFolder(t), "roots.pem");
  const good = await rootPem("good");
  const broken = good.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA");
  writeFileSync(file, broken);
  const { watch, lines } = setUp(t);
  const { roots } = watch(`file-root:${file}`);
  await eventually("a warning", () => lines.some((line) => line.includes("holds no certificate")));
  writeFileSync(file, broken + good);
  await eventually("the good one", () => roots().length === 1);
  assert.deepEqual(roots(), [good]);
  assert.match(lines.join(""), /failed to parse some certs from file/);
});

test("FileSecrets gives the machine's roots as file-root:system", async (t) => {
  const file = join(temporaryFolder(t), "bundle.crt");
  const bundle = (await rootPem("a")) + (await rootPem("b"));
  writeFileSync(file, bundle);
  const { roots } = setUp(t, { systemRoots: file }).watch("file-root:system");
  await eventually("them", () => roots().length === 1);
  assert.deepEqual(roots(), [bundle]);
});

test("FileSecrets looks at files once for all who want them, and not at all when nobody does", async (t) => {
  const file = join(temporaryFolder(t), "roots.pem");
  writeFileSync(file, await rootPem("one"));
  const { watch, lines } = setUp(t);
  const [first, second] = [watch(`file-root:${file}`), watch(`file-root:${file}`)];
  await eventually("both", () => first.roots().length + second.roots().length === 2);
  assert.equal(lines.filter((line) => line.includes("read certificate from file")).length, 1);
  first.stop();
  second.stop();
  first.stop();
  writeFileSync(file, await rootPem("two"));
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert.deepEqual([first.roots().length, second.roots().length], [1, 1]);
  const late = watch(`file-root:${file}`);
  await eventually("the newest", () => late.roots().length === 1);
});

test("FileSecrets does not read what belongs to another workload", async (t) => {
  const { lines, source } = setUp(t, { mayRead: async () => false });
  const file = join(temporaryFolder(t), "root.pem");
  writeFileSync(file, await rootPem("other"));
  t.after(source.watch(`file-root:${file}`, () => assert.fail("sent")));
  await eventually("a refusal", () => lines.join("").includes("does not belong to this workload"));
});

test("FileSecrets reads neither files that have no end nor such that are too large", async (t) => {
  const folder = temporaryFolder(t);
  const large = join(folder, "large.pem");
  writeFileSync(large, "");
  truncateSync(large, 1024 * 1024 + 1);
  const { watch, lines } = setUp(t);
  for (const file of ["/dev/zero", large]) watch(`file-root:${file}`);
  await eventually("both refusals", () => /regular file/.test(lines.join("")) && /1048576 bytes/.test(lines.join("")));
});
