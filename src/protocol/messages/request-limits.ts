/**
 * Limits on the parts of a request, checked while it is read. Anybody who reaches a port can send requests, so the time to read one
 * and the memory that is kept of it must be bounded. Requests of Envoy and of agents are far below these limits.
 */
import { readString } from "#lib/wire/read.ts";

/** Fields of a request: names, versions, and fields that we do not know. */
const MAX_FIELDS = 200_000;
/** Bytes of a name, a version, a nonce or a type URL. */
const MAX_TEXT_BYTES = 4_096;
/** Envoy writes a line for each resource that it rejects; what does not fit is rejected again, and found then. */
const MAX_ERROR_BYTES = 64 * 1024;

/** A request exceeds a limit. */
export class RequestLimitError extends Error {
  override readonly name = "RequestLimitError";
}

/** For readers of requests. */
export const FIELD_LIMIT = {
  fields: MAX_FIELDS,
  exceeded: () => new RequestLimitError(`it has more than ${MAX_FIELDS} fields`),
} as const;

/** The text of a field that identifies something. */
export function readIdentifier(value: Uint8Array): string {
  if (value.length <= MAX_TEXT_BYTES) return readString(value);
  throw new RequestLimitError(`a name or version has ${value.length} bytes: at most ${MAX_TEXT_BYTES} are allowed`);
}

/** The beginning of an error message, which may quote everything that was sent. */
export function readErrorText(value: Uint8Array): string {
  return readString(value.subarray(0, MAX_ERROR_BYTES));
}
