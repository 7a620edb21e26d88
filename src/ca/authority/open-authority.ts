/**
 * From a folder to a running authority: the files in it are used as they are and read again when they change; an empty
 * folder gets a self-signed root first.
 */
import { join } from "node:path";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { KeyKind } from "#lib/pki/signing-key.ts";
import {
  hasCaFiles,
  isOwnFolder,
  makeCaFolder,
  readCaFolder,
  WATCHED_FILES,
  writeCaFolder,
} from "../keys/ca-folder.ts";
import { withFolderLock } from "../keys/folder-lock.ts";
import { type CaLocation, loadBundle, readPassphrase } from "../keys/load-bundle.ts";
import { finishPromotion } from "../keys/next-root.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { isSameBundle, type SigningBundle, sharesRoot } from "../keys/signing-bundle.ts";
import { watchFiles } from "../keys/watch-files.ts";
import { Authority, type AuthorityOptions } from "./authority.ts";

export interface CaConfig extends AuthorityOptions, CaLocation {
  /** Of a root that has to be made. */
  readonly trustDomain: string;
  readonly rootLifetimeMs: number;
  readonly rootKey: KeyKind;
  readonly log: Logger;
}

/** Reads or makes what the authority signs with. */
export async function openAuthority(config: CaConfig): Promise<Authority> {
  const { folder, log, now } = config;
  await prepareFolder(config);
  const bundle = await loadBundle(config, now());
  log.info("CA is ready", describe(bundle, folder));
  return new Authority(bundle, config);
}

/** A folder of our own is made whole, once by whoever of several control planes comes first; an operator's is left alone. */
async function prepareFolder(config: CaConfig): Promise<void> {
  const { folder, log, now } = config;
  if (!isOwnFolder(folder) && (await hasCaFiles(folder))) return;
  const passphrase = await readPassphrase(config.passphraseFile);
  await makeCaFolder(folder);
  await withFolderLock(folder, async () => {
    await finishPromotion(folder);
    if ((await readCaFolder(folder)) !== undefined) return;
    const { trustDomain, rootLifetimeMs: lifetimeMs, rootKey: keyKind } = config;
    await writeCaFolder(folder, await selfSignedCa({ trustDomain, lifetimeMs, keyKind, now: now(), passphrase }));
    log.info("made a self-signed root", { folder, encrypted: passphrase !== undefined });
  });
}

export interface ReloadInput extends CaLocation {
  readonly authority: Authority;
  readonly log: Logger;
  readonly now: () => number;
  readonly intervalMs: number;
}

/** Follows changes of the folder until the signal aborts. Files that cannot be used leave the authority as it is. */
export function reloadAuthority(input: ReloadInput, signal: AbortSignal): void {
  const { authority, folder, log, now } = input;
  const reload = async () => {
    try {
      const next = await loadBundle(input, now());
      if (isSameBundle(authority.bundle, next)) return;
      if (!sharesRoot(authority.bundle, next)) {
        throw new MeshError(
          "CA_ROOT_REPLACED",
          "the new root-cert.pem has no root in common with the old one: put both roots in it first",
        );
      }
      authority.replace(next);
      log.info("CA files were reloaded", describe(next, folder));
    } catch (error) {
      log.error("changed CA files are not used, the former ones stay", { folder, reason: errorText(error) });
    }
  };
  const files = WATCHED_FILES.map((name) => join(folder, name));
  watchFiles({ files, intervalMs: input.intervalMs, onChange: () => void reload() }, signal);
}

function describe({ issuer, roots }: SigningBundle, folder: string): Record<string, string | number> {
  const { subject, serialNumber, validToDate } = issuer.certificate;
  return { folder, subject, serial: serialNumber, expires: validToDate.toISOString(), roots: roots.length };
}
