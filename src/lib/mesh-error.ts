/**
 * An operation that failed for a reason outside our code: a peer, a file, a port. Bugs throw plain `Error`.
 * Codes are stable; `docs/reference/errors.md` lists each of them.
 */
export class MeshError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "MeshError";
    this.code = code;
  }
}

/** The message of anything that was thrown, with the messages of its causes. */
export function errorText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  if (thrown.cause === undefined) return thrown.message;
  const cause = errorText(thrown.cause);
  return thrown.message.endsWith(cause) ? thrown.message : `${thrown.message}: ${cause}`;
}
