/** Writes the workload's secrets to files, for applications that read them from there (OUTPUT_CERTS). */
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { makeFolder } from "#lib/files/make-folder.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { ROOT_SECRET, type Secret, type SecretSource, WORKLOAD_SECRET } from "./secret.ts";

export interface OutputFilesOptions {
  readonly folder: string;
  readonly mode: number;
  readonly source: SecretSource;
  readonly log: Logger;
  readonly backoff?: Backoff;
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

/**
 * Keeps the files current until the signal is aborted. A file is replaced as a whole: who reads it sees the old one or the
 * new one, also when the disk is full; then it is tried again with growing pauses.
 */
export async function runOutputFiles(options: OutputFilesOptions, signal: AbortSignal): Promise<void> {
  const { source, log, folder } = options;
  const backoff = options.backoff ?? new Backoff({ initialMs: FIRST_RETRY_MS, maxMs: LONGEST_RETRY_MS });
  /** The newest of each name that is not written yet. */
  const waiting = new Map<string, Secret>();
  let wake = new AbortController();
  const stop = () => wake.abort();
  const onSecret = (secret: Secret) => {
    waiting.set(secret.name, secret);
    stop();
  };
  const watches = [WORKLOAD_SECRET, ROOT_SECRET].map((name) => source.watch(name, onSecret));
  signal.addEventListener("abort", stop);
  while (!signal.aborted) {
    if (waiting.size === 0) await sleep(LONGEST_RETRY_MS, wake.signal);
    wake = new AbortController();
    for (const [name, secret] of [...waiting]) {
      try {
        await writeSecret(options, secret);
        if (waiting.get(name) === secret) waiting.delete(name);
        backoff.reset();
      } catch (thrown) {
        log.error(`error when output the resource: ${folder}: ${errorText(thrown)}`);
        await sleep(backoff.next(), wake.signal);
      }
    }
  }
  signal.removeEventListener("abort", stop);
  for (const unwatch of watches) unwatch();
}

async function writeSecret({ folder, mode }: OutputFilesOptions, secret: Secret): Promise<void> {
  const files: Readonly<Record<string, string>> =
    "roots" in secret
      ? { "root-cert.pem": secret.roots }
      : { "key.pem": secret.privateKey, "cert-chain.pem": secret.chain };
  makeFolder(folder, 0o700);
  const staged: { readonly from: string; readonly to: string }[] = [];
  try {
    for (const [name, text] of Object.entries(files)) {
      const to = join(folder, name);
      if ((await readFile(to, "utf8").catch(() => undefined)) === text) continue;
      const from = join(folder, `.${name}.${process.pid}`);
      staged.push({ from, to });
      await writeWhole(from, text, mode);
    }
    // Only now, so that key and certificate are both on the disk before one of them is replaced.
    for (const { from, to } of staged) await rename(from, to);
  } catch (thrown) {
    for (const { from } of staged) await rm(from, { force: true });
    throw thrown;
  }
}

async function writeWhole(path: string, text: string, mode: number): Promise<void> {
  const file = await open(path, "w", mode);
  try {
    await file.writeFile(text);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}
