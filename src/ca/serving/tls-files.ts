import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { ServerIdentity, ServerIdentitySource } from "#lib/net/server-identity.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import { watchFiles } from "../keys/watch-files.ts";

export interface TlsFilesInput {
  /** --tlsCertFile */
  readonly certFile: string;
  /** --tlsKeyFile */
  readonly keyFile: string;
  /** --caCertFile: roots of client certificates. */
  readonly caFile: string;
  readonly log: Logger;
  readonly intervalMs: number;
}

/** The control plane's certificate from files of the operator, read again when they change. */
export class TlsFiles implements ServerIdentitySource {
  readonly #input: TlsFilesInput;
  readonly #listeners = new Set<(identity: ServerIdentity) => void>();
  #identity: ServerIdentity;

  private constructor(input: TlsFilesInput, identity: ServerIdentity) {
    this.#input = input;
    this.#identity = identity;
  }

  static async read(input: TlsFilesInput): Promise<TlsFiles> {
    return new TlsFiles(input, await readIdentity(input));
  }

  current(): ServerIdentity {
    return this.#identity;
  }

  subscribe(listener: (identity: ServerIdentity) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Follows the files until the signal aborts; files that do not fit together leave the former ones in use. */
  watch(signal: AbortSignal): void {
    const { certFile, keyFile, caFile, intervalMs } = this.#input;
    watchFiles({ files: [certFile, keyFile, caFile], intervalMs, onChange: () => void this.#reload() }, signal);
  }

  async #reload(): Promise<void> {
    const { certFile: file, log } = this.#input;
    try {
      const identity = await readIdentity(this.#input);
      if (isDeepStrictEqual(identity, this.#identity)) return;
      this.#identity = identity;
      for (const listener of this.#listeners) listener(this.#identity);
      log.info("the control plane's certificate was reloaded", { file });
    } catch (error) {
      log.error("changed TLS files are not used, the former ones stay", { reason: errorText(error) });
    }
  }
}

async function readIdentity({ certFile, keyFile, caFile }: TlsFilesInput): Promise<ServerIdentity> {
  const [certificates, key, clientRoots] = await Promise.all([
    readPem("--tlsCertFile", certFile),
    readPem("--tlsKeyFile", keyFile),
    readPem("--caCertFile", caFile),
  ]);
  let belongs: boolean;
  try {
    for (const root of pemCertificates(clientRoots)) new X509Certificate(root);
    belongs = new X509Certificate(certificates).checkPrivateKey(createPrivateKey(key));
  } catch (cause) {
    const files = `"${certFile}", "${keyFile}" or "${caFile}"`;
    throw new MeshError("TLS_FILES_INVALID", `cannot parse the TLS files ${files}`, { cause });
  }
  if (!belongs) {
    throw new MeshError(
      "TLS_FILES_INVALID",
      `the key in "${keyFile}" (--tlsKeyFile) does not belong to the certificate in "${certFile}" (--tlsCertFile)`,
    );
  }
  return { certificates, key, clientRoots };
}

async function readPem(flag: string, file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError("TLS_FILES_INVALID", `cannot read "${file}" (${flag})`, { cause });
  }
}
