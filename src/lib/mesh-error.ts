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
  return thrown.cause === undefined ? thrown.message : `${thrown.message}: ${errorText(thrown.cause)}`;
}
