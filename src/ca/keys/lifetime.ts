import { MeshError } from "#lib/mesh-error.ts";
import type { Validity } from "#lib/pki/issue.ts";

/** Certificates begin this much in the past, for peers whose clock is behind ours. */
export const CLOCK_SKEW_MS = 120_000;

export interface LifetimeInput {
  /** As asked; 0 or less means the default. */
  readonly wantedMs: number;
  readonly defaultMs: number;
  readonly maxMs: number;
  /** End of the signing certificate, which no certificate may outlive. */
  readonly issuerEnd: Date;
  readonly now: number;
}

/** From when to when a certificate is valid that is issued now. */
export function lifetime({ wantedMs, defaultMs, maxMs, issuerEnd, now }: LifetimeInput): Validity {
  if (now >= issuerEnd.getTime()) {
    throw new MeshError("CA_EXPIRED", `the CA's own certificate ended at ${issuerEnd.toISOString()}`);
  }
  const length = Math.min(wantedMs > 0 ? wantedMs : defaultMs, maxMs);
  return {
    notBefore: new Date(now - CLOCK_SKEW_MS),
    notAfter: new Date(Math.min(now + length, issuerEnd.getTime())),
  };
}
