import { writeFile } from "node:fs/promises";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { askTokenServer } from "./http-json.ts";
import { jwtExpiry } from "./jwt.ts";

export interface GceTokenOptions {
  readonly audience: string;
  /** Gets each token, for those who read it from there. */
  readonly file: string;
  /** `host` or `host:port` */
  readonly metadataHost: string;
  readonly log: Logger;
  readonly checkEveryMs?: number;
}

const CHECK_EVERY_MS = 5 * 60_000;
/** A token is replaced when it has less than this left. */
const GRACE_MS = 25 * 60_000;

/** Identity of a virtual machine of Google Compute Engine, from its metadata server. */
export class GceToken {
  readonly #options: GceTokenOptions;
  #last = "";

  constructor(options: GceTokenOptions) {
    this.#options = options;
  }

  /** A token of this moment, which is put into the file too. */
  async fetch(): Promise<string> {
    const { audience, metadataHost, file, log } = this.#options;
    const path = `instance/service-accounts/default/identity?audience=${encodeURIComponent(audience)}&format=full`;
    const url = `http://${metadataHost}/computeMetadata/v1/${path}`;
    const { status, body } = await askTokenServer({ url, method: "GET", headers: { "Metadata-Flavor": "Google" } });
    const token = body.trim();
    if (status !== 200 || token === "")
      throw new MeshError(
        "TOKEN_SERVER_FAILED",
        `Failed to get vm identity token from metadata server: status ${status}`,
      );
    this.#last = token;
    try {
      await writeFile(file, token, { mode: 0o640 });
    } catch (cause) {
      throw new MeshError("FILE_UNWRITABLE", `Encountered error when writing vm identity token to ${file}`, { cause });
    }
    log.debug(`Got GCE identity token: ${token.length}`);
    return token;
  }

  /** Keeps the token in the file fresh until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { checkEveryMs = CHECK_EVERY_MS, log } = this.#options;
    while (!signal.aborted) {
      await sleep(checkEveryMs, signal);
      if (signal.aborted || !isOld(this.#last)) continue;
      await this.fetch().catch((thrown: unknown) => log.error(`credential refresh failed: ${errorText(thrown)}`));
    }
  }
}

/** A token whose end cannot be read is as good as none. */
export function isOld(token: string, now = Date.now()): boolean {
  try {
    const expiry = jwtExpiry(token);
    return expiry === undefined || now > expiry - GRACE_MS;
  } catch {
    return true;
  }
}
