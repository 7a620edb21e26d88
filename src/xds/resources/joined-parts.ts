/**
 * Parts that were encoded apart, one after the other as fields of a message. Thousands of virtual hosts are parts of one route
 * configuration, and mostly one of them has changed: where the parts of before stand, bytes and hashes are taken from there.
 */
import { hash } from "node:crypto";
import { messageFieldLength, writeMessageField } from "#lib/wire/fields.ts";

/** What is joined. The same object has the same bytes. */
export interface Part {
  readonly bytes: Uint8Array;
}

/** How parts stand in the bytes of a message, after its other fields. */
export interface JoinedParts {
  readonly field: number;
  readonly parts: readonly Part[];
  /** Where each of them ends, counted from the start of the first. */
  readonly ends: Uint32Array;
  /** Hashes of all of them: what they and their order are is known by these. */
  readonly hashes: Uint8Array;
}

/** Parts that were joined before, and their bytes. */
export interface JoinedBefore extends JoinedParts {
  readonly bytes: Uint8Array;
}

const HASH_BYTES = 12;

/** Lays out parts; all but those between the parts that both begin with and end with are as before. */
export function joinParts(parts: readonly Part[], field: number, before?: JoinedParts): JoinedParts {
  const { start, end, shift } = commonEnds(parts, field, before);
  const ends = new Uint32Array(parts.length);
  const hashes = new Uint8Array(parts.length * HASH_BYTES);
  if (before !== undefined) {
    ends.set(before.ends.subarray(0, start));
    hashes.set(before.hashes.subarray(0, start * HASH_BYTES));
    hashes.set(before.hashes.subarray((end - shift) * HASH_BYTES), end * HASH_BYTES);
  }
  let at = endOf(ends, start);
  for (let i = start; i < end; i++) {
    const { bytes } = parts[i] as Part;
    at += messageFieldLength(field, bytes.length);
    ends[i] = at;
    hashes.set(hash("sha256", bytes, "buffer").subarray(0, HASH_BYTES), i * HASH_BYTES);
  }
  if (before !== undefined) {
    const moved = at - endOf(before.ends, end - shift);
    for (let i = end; i < parts.length; i++) ends[i] = (before.ends[i - shift] ?? 0) + moved;
  }
  return { field, parts, ends, hashes };
}

/** How many bytes all of them have. */
export function joinedLength({ ends }: JoinedParts): number {
  return endOf(ends, ends.length);
}

/** Writes the parts from `offset` on. */
export function writeParts(target: Uint8Array, offset: number, joined: JoinedParts, before?: JoinedBefore): void {
  const { parts, field, ends } = joined;
  const { start, end, shift } = commonEnds(parts, field, before);
  if (before !== undefined) {
    target.set(before.bytes.subarray(0, endOf(ends, start)), offset);
    const rest = before.bytes.subarray(endOf(before.ends, end - shift), joinedLength(before));
    target.set(rest, offset + endOf(ends, end));
  }
  let at = offset + endOf(ends, start);
  for (let i = start; i < end; i++) at = writeMessageField(target, at, { field, message: (parts[i] as Part).bytes });
}

function endOf(ends: Uint32Array, count: number): number {
  return count === 0 ? 0 : (ends[count - 1] ?? 0);
}

/** Parts from `start` to `end` differ; those that follow stood `shift` places before. */
interface Difference {
  readonly start: number;
  readonly end: number;
  readonly shift: number;
}

function commonEnds(parts: readonly Part[], field: number, before: JoinedParts | undefined): Difference {
  if (before === undefined || before.field !== field) return { start: 0, end: parts.length, shift: 0 };
  const others = before.parts;
  const shift = parts.length - others.length;
  const shorter = Math.min(parts.length, others.length);
  let start = 0;
  while (start < shorter && parts[start] === others[start]) start++;
  let same = 0;
  while (same < shorter - start && parts[parts.length - 1 - same] === others[others.length - 1 - same]) same++;
  return { start, end: parts.length - same, shift };
}
