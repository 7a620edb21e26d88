import { existsSync } from "node:fs";
import { join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import type { Logger } from "#lib/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { KeyKind } from "#lib/pki/signing-key.ts";
import type { Authority } from "./authority.ts";
import { GENERATED_MARK } from "./ca-folder.ts";
import { type CaLocation, loadBundle, readPassphrase } from "./load-bundle.ts";
import { announceNextRoot, promoteNextRoot, readNextRoot, removeEndedRoots } from "./next-root.ts";
import { type RotationRules, rotationStep } from "./root-rotation.ts";
import { selfSignedCa } from "./self-signed.ts";

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
  const { authority, folder, log, now } = input;
  if (!isOwnRoot(input)) return;
  const current = authority.bundle.issuer.certificate;
  const step = rotationStep({ ...input, current, next: await readNextRoot(folder), now: now() });
  if (step === "announce") await announceNextRoot(folder, await nextRoot(input));
  if (step === "sign") await promoteNextRoot(folder);
  const removed = await removeEndedRoots(folder, now());
  if (step === "wait" && !removed) return;
  const bundle = await loadBundle(input, now());
  authority.replace(bundle);
  const { serialNumber: serial, validToDate } = bundle.issuer.certificate;
  log.info(MESSAGES[step], { folder, serial, expires: validToDate.toISOString(), roots: bundle.roots.length });
}

const MESSAGES = {
  announce: "the root ends soon: a new root is trusted beside it, and will sign later",
  sign: "the new root signs from now on",
  wait: "a root that ended is not trusted any more",
};

function isOwnRoot({ authority, folder }: RotateRootInput): boolean {
  return authority.bundle.path.length === 1 && existsSync(join(folder, GENERATED_MARK));
}

async function nextRoot(input: RotateRootInput): ReturnType<typeof selfSignedCa> {
  const { trustDomain, rootLifetimeMs: lifetimeMs, rootKey: keyKind, now } = input;
  const passphrase = await readPassphrase(input.passphraseFile);
  return selfSignedCa({ trustDomain, lifetimeMs, keyKind, now: now(), passphrase });
}
