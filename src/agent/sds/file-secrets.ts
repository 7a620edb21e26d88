/**
 * Secrets from files. Names say which files: `file-root:ROOTS` and `file-cert:CERTIFICATE~KEY`, for destinations outside
 * the mesh; the workload's own may be in files too. What cannot be used is told and not sent: the last good one stays.
 */
import { X509Certificate } from "node:crypto";
import { constants, type FileHandle, open } from "node:fs/promises";
import { Backoff } from "#lib/async/backoff.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import { watchFiles } from "../file-watch.ts";
import { certificateIn, checkKey } from "../key-pair.ts";
import type { AgentMetrics } from "../metrics.ts";
import { joinPem } from "./certificate.ts";
import { CERTIFICATE_FILES, ROOT_FILES, type Secret, type SecretSource } from "./secret.ts";

/** Which files a secret is in. */
export type FileSecret = { readonly roots: string } | { readonly certificate: string; readonly key: string };

export interface FileSecretsOptions {
  readonly log: Logger;
  readonly metrics: Pick<AgentMetrics, "failedFileWatches" | "failedFileSecrets">;
  /** Whether an open file may be sent; undefined where everything that the agent can read may be. */
  readonly mayRead?: ((file: FileHandle) => Promise<boolean>) | undefined;
  /** FILE_DEBOUNCE_DURATION */
  readonly debounceMs: number;
  /** File with what the machine trusts; undefined where there is none. */
  readonly systemRoots: string | undefined;
  /** Files may be unusable for so long before that is counted: those that belong together are seldom written at one moment. */
  readonly patienceMs?: number;
  /** A path as the workload means it. */
  readonly resolve: (path: string) => string;
}

const SEPARATOR = "~";
/** `file-root:system` is what the machine trusts. */
const SYSTEM_ROOTS = "system";
/** After files that cannot be used they are read again even if nobody tells of a change. */
const LONGEST_RETRY_MS = 10_000;
const PATIENCE_MS = 10_000;

/** Undefined when the name is not one of a secret in files. */
export function parseFileSecret(name: string): FileSecret | undefined {
  const parts = name.slice(ROOT_FILES.length).split(SEPARATOR);
  const [first = "", second = ""] = parts;
  if (name.startsWith(ROOT_FILES) && parts.length === 1) return { roots: first };
  if (name.startsWith(CERTIFICATE_FILES) && parts.length === 2) return { certificate: first, key: second };
  return undefined;
}

export class FileSecrets implements SecretSource {
  readonly #options: FileSecretsOptions;
  readonly #followed = new Map<string, FollowedSecret>();

  constructor(options: FileSecretsOptions) {
    this.#options = options;
  }

  owns(name: string): boolean {
    return parseFileSecret(name) !== undefined;
  }

  watch(name: string, onSecret: (secret: Secret) => void): () => void {
    const files = parseFileSecret(name);
    if (files === undefined) return () => undefined;
    const { systemRoots } = this.#options;
    const isSystem = "roots" in files && files.roots === SYSTEM_ROOTS && systemRoots !== undefined;
    return this.follow(name, isSystem ? { roots: systemRoots } : files, onSecret);
  }

  /** As `watch`, for a secret whose name does not say its files. All who follow a name share one look at its files. */
  follow(name: string, files: FileSecret, onSecret: (secret: Secret) => void): () => void {
    let followed = this.#followed.get(name);
    if (followed === undefined) {
      followed = new FollowedSecret(name, resolved(files, this.#options.resolve), this.#options);
      this.#followed.set(name, followed);
    }
    const secret = followed;
    secret.listen(onSecret);
    return () => {
      if (!secret.forget(onSecret)) return;
      secret.close();
      this.#followed.delete(name);
    };
  }
}

function resolved(files: FileSecret, resolve: (path: string) => string): FileSecret {
  if ("roots" in files) return { roots: resolve(files.roots) };
  return { certificate: resolve(files.certificate), key: resolve(files.key) };
}

class FollowedSecret {
  readonly #name: string;
  readonly #files: FileSecret;
  readonly #options: FileSecretsOptions;
  readonly #listeners = new Set<(secret: Secret) => void>();
  readonly #backoff: Backoff;
  readonly #stopWatching: () => void;
  #last: Secret | undefined;
  #problem = "";
  /** When the files were first found unusable, or that was last counted. */
  #unusableSince: number | undefined;
  #retry: NodeJS.Timeout | undefined;
  #reading = false;
  #again = false;

  constructor(name: string, files: FileSecret, options: FileSecretsOptions) {
    this.#name = name;
    this.#files = files;
    this.#options = options;
    this.#backoff = new Backoff({ initialMs: Math.max(1, options.debounceMs), maxMs: LONGEST_RETRY_MS });
    this.#stopWatching = watchFiles("roots" in files ? [files.roots] : [files.certificate, files.key], {
      debounceMs: options.debounceMs,
      onChange: () => this.#read(),
      onFailure: (thrown) => {
        options.metrics.failedFileWatches.add();
        options.log.error(`${name}: error adding watcher, retrying watches: ${errorText(thrown)}`);
      },
    });
    this.#read();
  }

  listen(onSecret: (secret: Secret) => void): void {
    this.#listeners.add(onSecret);
    if (this.#last !== undefined) onSecret(this.#last);
  }

  /** True when nobody listens any more. */
  forget(onSecret: (secret: Secret) => void): boolean {
    return this.#listeners.delete(onSecret) && this.#listeners.size === 0;
  }

  close(): void {
    this.#stopWatching();
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#listeners.clear();
  }

  #read(): void {
    this.#again = this.#reading;
    if (this.#reading) return;
    this.#reading = true;
    clearTimeout(this.#retry);
    readSecret(this.#name, this.#files, this.#options)
      .then((secret) => this.#replace(secret))
      .catch((thrown: unknown) => this.#failed(errorText(thrown)))
      .finally(() => {
        this.#reading = false;
        if (this.#again) this.#read();
      });
  }

  #replace(secret: Secret): void {
    this.#backoff.reset();
    this.#problem = "";
    this.#unusableSince = undefined;
    if (JSON.stringify(secret) === JSON.stringify(this.#last) || this.#listeners.size === 0) return;
    this.#last = secret;
    this.#options.log.info("read certificate from file", { resource: this.#name });
    for (const listener of this.#listeners) listener(secret);
  }

  #failed(problem: string): void {
    if (this.#listeners.size === 0) return;
    this.#count();
    if (problem !== this.#problem) this.#options.log.warn(`Secret ${this.#name} cannot be sent: ${problem}`);
    this.#problem = problem;
    this.#retry = setTimeout(() => this.#read(), this.#backoff.next()).unref();
  }

  #count(): void {
    const { metrics, patienceMs = PATIENCE_MS } = this.#options;
    const now = performance.now();
    this.#unusableSince ??= now;
    if (now - this.#unusableSince < patienceMs) return;
    metrics.failedFileSecrets.add();
    this.#unusableSince = now;
  }
}

async function readSecret(
  name: string,
  files: FileSecret,
  { log, mayRead }: Pick<FileSecretsOptions, "log" | "mayRead">,
): Promise<Secret> {
  if ("roots" in files) return { name, roots: usableRoots(await readText(files.roots, mayRead), files.roots, log) };
  const chain = await readText(files.certificate, mayRead);
  const privateKey = await readText(files.key, mayRead);
  const leaf = certificateIn({ file: files.certificate, pem: chain });
  // While both are being replaced they do not fit for a moment.
  checkKey({ file: files.key, pem: privateKey }, { file: files.certificate, leaf });
  return { name, chain, privateKey };
}

/** More than any chain or set of roots. Whoever asks for a secret names its files, such as one that never ends. */
const MAX_FILE_BYTES = 1024 * 1024;
/** A pipe that nobody writes to does not hold up who opens it. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** Not all errors of Node say which file they are about. */
async function readText(path: string, mayRead: FileSecretsOptions["mayRead"]): Promise<string> {
  try {
    await using file = await open(path, OPEN_FLAGS);
    const stats = await file.stat();
    if (!stats.isFile() && !stats.isDirectory()) throw new Error("it is not a regular file");
    if (stats.size > MAX_FILE_BYTES) throw new Error(`it has more than ${MAX_FILE_BYTES} bytes`);
    if (mayRead !== undefined && !(await mayRead(file))) throw new Error("it does not belong to this workload");
    return await file.readFile("utf8");
  } catch (cause) {
    throw new MeshError("SECRET_UNUSABLE", `${path} cannot be read`, { cause });
  }
}

/** One root that cannot be parsed must not take the others away from Envoy, which would refuse all of them. */
function usableRoots(text: string, file: string, log: Logger): string {
  const problems: string[] = [];
  const roots = pemCertificates(text).filter((pem) => {
    try {
      return new X509Certificate(pem) !== undefined;
    } catch (thrown) {
      problems.push(errorText(thrown));
      return false;
    }
  });
  if (roots.length === 0) {
    const reasons = problems.length === 0 ? "" : `: ${problems.join(", ")}`;
    throw new MeshError("SECRET_UNUSABLE", `${file} holds no certificate${reasons}`);
  }
  if (problems.length > 0) log.error(`failed to parse some certs from file ${file}: ${problems.join(", ")}`);
  return joinPem(roots);
}
