import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { KeyKind } from "#lib/pki/signing-key.ts";
import { isOwnFolder } from "../keys/ca-folder.ts";
import { withFolderLock } from "../keys/folder-lock.ts";
import { type CaLocation, loadBundle, readPassphrase } from "../keys/load-bundle.ts";
import {
  announceNextRoot,
  finishPromotion,
  promoteNextRoot,
  readNextRoot,
  removeEndedRoots,
} from "../keys/next-root.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import { isSameBundle } from "../keys/signing-bundle.ts";
import type { Authority } from "./authority.ts";
import { type RotationRules, rotationStep } from "./root-rotation.ts";

export interface RotateRootInput extends RotationRules, CaLocation {
  readonly authority: Authority;
  /** Of the next root. */
  readonly trustDomain: string;
  readonly rootLifetimeMs: number;
  readonly rootKey: KeyKind;
  /** Between two looks at the root; 0 turns rotation off, as in Istio. */
  readonly checkIntervalMs: number;
  readonly log: Logger;
  readonly now: () => number;
}

/** Replaces a root of our own in time, until the signal aborts. A step that fails is tried again at the next look. */
export async function rotateRoot(input: RotateRootInput, signal: AbortSignal): Promise<void> {
  if (input.checkIntervalMs <= 0) return;
  while (!signal.aborted) {
    try {
      await checkRoot(input);
    } catch (error) {
      input.log.error("cannot rotate the root, the former one stays", { reason: errorText(error) });
    }
    await sleep(input.checkIntervalMs, signal);
  }
}

/** One look at the root, and what has to be done about it. Plugged-in files are the operator's to change. */
export async function checkRoot(input: RotateRootInput): Promise<void> {
  const { folder } = input;
  if (!isOwnFolder(folder)) return;
  await withFolderLock(folder, () => checkFolder(input));
}

async function checkFolder(input: RotateRootInput): Promise<void> {
  const { authority, folder, log, now } = input;
  // Another control plane may have done the step already: the folder decides, not what we remember of it.
  await finishPromotion(folder);
  const found = await loadBundle(input, now());
  if (found.path.length !== 1) return;
  const current = found.issuer.certificate;
  const step = rotationStep({ ...input, current, next: await readNextRoot(folder), now: now() });
  if (step === "announce") await announceNextRoot(folder, await nextRoot(input));
  if (step === "sign") await promoteNextRoot(folder);
  const removed = await removeEndedRoots(folder, now());
  const isChanged = step !== "wait" || removed;
  const bundle = isChanged ? await loadBundle(input, now()) : found;
  if (isSameBundle(authority.bundle, bundle)) return;
  authority.replace(bundle);
  const { serialNumber: serial, validToDate } = bundle.issuer.certificate;
  const message = isChanged ? MESSAGES[step] : "another control plane changed the root";
  log.info(message, { folder, serial, expires: validToDate.toISOString(), roots: bundle.roots.length });
}

const MESSAGES = {
  announce: "the root ends soon: a new root is trusted beside it, and will sign later",
  sign: "the new root signs from now on",
  wait: "a root that ended is not trusted any more",
};

async function nextRoot(input: RotateRootInput): ReturnType<typeof selfSignedCa> {
  const { trustDomain, rootLifetimeMs: lifetimeMs, rootKey: keyKind, now } = input;
  const passphrase = await readPassphrase(input.passphraseFile);
  return selfSignedCa({ trustDomain, lifetimeMs, keyKind, now: now(), passphrase });
}
