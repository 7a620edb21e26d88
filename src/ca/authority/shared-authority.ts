/**
 * An authority whose key all replicas share by a Secret. Each has a working copy of it in a folder of its own:
 *
 *     Secret --at the start, and at each change--> folder --> authority
 *        ^------- the leader, when it rotated the root in its folder
 */
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { follow } from "#lib/kubernetes/follow.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { makeCaFolder } from "../keys/ca-folder.ts";
import { withFolderLock } from "../keys/folder-lock.ts";
import { readPassphrase } from "../keys/load-bundle.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { isSameBundle, sharesRoot, signingBundle } from "../keys/signing-bundle.ts";
import type { Authority } from "./authority.ts";
import {
  CA_SECRET,
  type CaCopy,
  caCopyOf,
  caCopyOfFiles,
  caFilesOf,
  createCaSecret,
  isSameCopy,
  readCaSecret,
  readWorkingCopy,
  replaceCaSecret,
  SECRETS,
  writeWorkingCopy,
} from "./ca-secret.ts";
import { type CaConfig, openAuthority } from "./open-authority.ts";
import { checkRoot, type RotateRootInput } from "./rotate-root.ts";

export interface SharedCaConfig extends CaConfig, Pick<RotateRootInput, "gracePercent" | "checkIntervalMs"> {
  readonly api: KubernetesApi;
  /** Of the Secret. */
  readonly namespace: string;
}

const RETRY = { initialMs: 200, maxMs: 10_000 };
const VERBS = ["get", "list", "watch", "create", "update"];

/** The authority of the Secret, which is made if there is none. Asks until there is an answer; undefined if aborted before. */
export async function openSharedAuthority(
  config: SharedCaConfig,
  signal: AbortSignal,
): Promise<SharedAuthority | undefined> {
  const backoff = new Backoff(RETRY);
  while (!signal.aborted) {
    try {
      const secret = (await readCaSecret(config)) ?? (await createCaSecret(config, await newRoot(config)));
      if (secret !== undefined) {
        await makeCaFolder(config.folder);
        await writeWorkingCopy(config.folder, caCopyOf(secret));
        return new SharedAuthority(await openAuthority(config), config);
      }
    } catch (problem) {
      // What is in the Secret does not get better by asking again.
      if (problem instanceof MeshError && problem.code.startsWith("CA_")) throw problem;
      const reason = troubleText(problem, SECRETS, VERBS);
      config.log.error(`Secret ${CA_SECRET} cannot be had, without it nothing can be signed`, { reason });
    }
    await sleep(backoff.next(), signal);
  }
  return undefined;
}

async function newRoot({ trustDomain, rootLifetimeMs, rootKey, now, passphraseFile, log }: CaConfig): Promise<CaCopy> {
  const passphrase = await readPassphrase(passphraseFile);
  log.info("there is no root yet, so one is made", { secret: CA_SECRET });
  return caCopyOfFiles(
    await selfSignedCa({ trustDomain, lifetimeMs: rootLifetimeMs, keyKind: rootKey, now: now(), passphrase }),
  );
}

export class SharedAuthority {
  readonly authority: Authority;
  readonly #config: SharedCaConfig;
  /** Changes are taken one after the other. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(authority: Authority, config: SharedCaConfig) {
    this.authority = authority;
    this.#config = config;
  }

  /** Signs with what is in the Secret, until the signal aborts. A Secret that goes, or is of no use, changes nothing. */
  async follow(signal: AbortSignal): Promise<void> {
    const { api, namespace, log } = this.#config;
    const take = (secret: RawObject) => void this.#inTurn(() => this.#take(secret));
    const gone = () => log.warn(`Secret ${CA_SECRET} is gone: its key is used on`, { namespace });
    const follower = {
      replace: async (secrets: readonly RawObject[]) => {
        if (secrets[0] === undefined) gone();
        else await this.#inTurn(() => this.#take(secrets[0] as RawObject));
      },
      put: take,
      remove: gone,
      trouble: (problem: unknown) => {
        if (problem !== undefined) log.warn(`Secret ${CA_SECRET}: ${troubleText(problem, SECRETS)}`);
      },
    };
    const fieldSelector = `metadata.name=${CA_SECRET}`;
    const backoff = new Backoff(RETRY);
    await follow({ api, type: SECRETS, namespace, fieldSelector, follower, backoff, signal });
    await this.#last;
  }

  /** Replaces the root in time, until the signal aborts. Only one replica may do this at a time. */
  async rotate(signal: AbortSignal): Promise<void> {
    const { checkIntervalMs, log } = this.#config;
    if (checkIntervalMs <= 0) return;
    while (!signal.aborted) {
      try {
        await this.#inTurn(() => this.#look());
      } catch (problem) {
        const reason = troubleText(problem, SECRETS, VERBS);
        log.error("cannot rotate the root, the former one stays", { reason });
      }
      await sleep(checkIntervalMs, signal);
    }
  }

  async #look(): Promise<void> {
    const config = this.#config;
    const secret = await readCaSecret(config);
    if (secret === undefined || !(await this.#take(secret))) return;
    await checkRoot({ ...config, authority: this.authority });
    const copy = await readWorkingCopy(config.folder);
    if (isSameCopy(copy, caCopyOf(secret))) return;
    try {
      await replaceCaSecret(config, secret, copy);
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.status !== 409) throw problem;
      const other = await readCaSecret(config);
      if (other !== undefined) await this.#take(other);
    }
  }

  /** True when the Secret is what is signed with now. */
  async #take(secret: RawObject): Promise<boolean> {
    const { folder, passphraseFile, now, log } = this.#config;
    try {
      const copy = caCopyOf(secret);
      const next = signingBundle({ ...caFilesOf(copy), passphrase: await readPassphrase(passphraseFile) }, now());
      if (!sharesRoot(this.authority.bundle, next)) {
        const way = "put both roots in its root-cert.pem first";
        throw new MeshError("CA_ROOT_REPLACED", `the new root has nothing in common with the old one: ${way}`);
      }
      await withFolderLock(folder, async () => {
        if (!isSameCopy(await readWorkingCopy(folder), copy)) await writeWorkingCopy(folder, copy);
      });
      if (isSameBundle(this.authority.bundle, next)) return true;
      this.authority.replace(next);
      log.info(`Secret ${CA_SECRET} has changed`, { serial: next.issuer.certificate.serialNumber });
      return true;
    } catch (problem) {
      log.error(`Secret ${CA_SECRET} is not used, the former one stays`, { reason: errorText(problem) });
      return false;
    }
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
