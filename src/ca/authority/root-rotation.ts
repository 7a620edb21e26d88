/**
 * When a self-signed root makes way for the next one. Two steps, far enough apart that no proxy meets a certificate
 * whose root it was not told of:
 *
 *     old signs ──── announce: both trusted, old signs ──── sign: both trusted, new signs ──── old ends: new alone
 */
import type { X509Certificate } from "node:crypto";
import { CLOCK_SKEW_MS } from "../keys/lifetime.ts";

export interface RotationRules {
  /** Last part of a root's life in which it is replaced, in percent of its life. */
  readonly gracePercent: number;
  /** Longest lifetime of a workload's certificate. */
  readonly maxTtlMs: number;
}

export interface RotationState extends RotationRules {
  /** The root that signs. */
  readonly current: X509Certificate;
  /** The root that was announced, if one was. */
  readonly next: X509Certificate | undefined;
  readonly now: number;
}

/** What has to be done now. */
export function rotationStep({
  current,
  next,
  gracePercent,
  maxTtlMs,
  now,
}: RotationState): "wait" | "announce" | "sign" {
  const graceMs = graceOf(current, gracePercent);
  if (next === undefined) return now >= announcementOf(current, gracePercent) ? "announce" : "wait";
  // Each certificate that was issued before the announcement has ended by then, and its renewal brought both roots.
  // Half the grace period if that is shorter, so that the other half is left for certificates of the old root to end.
  const announcedMs = Math.min(maxTtlMs, graceMs / 2);
  return now >= next.validFromDate.getTime() + CLOCK_SKEW_MS + announcedMs ? "sign" : "wait";
}

/** When the successor of a root is announced. */
export function announcementOf(root: X509Certificate, gracePercent: number): number {
  return root.validToDate.getTime() - graceOf(root, gracePercent);
}

function graceOf({ validFromDate, validToDate }: X509Certificate, gracePercent: number): number {
  return ((validToDate.getTime() - validFromDate.getTime()) * gracePercent) / 100;
}
