/** What a fuzz target is: one reader of untrusted bytes, with what must hold for every input. */

export interface FuzzTarget {
  /** Longest input to try. Growth tests cover larger ones. */
  readonly maxBytes: number;
  /** Words of the format, which mutations insert. */
  readonly dictionary: readonly string[];
  /** Reads one input and throws if an invariant does not hold. */
  readonly run: (input: Buffer) => void | Promise<void>;
}

/** An error that a target declares: its class, or a pattern for errors of Node itself. */
type Declared = RegExp | (abstract new (...args: never[]) => Error);

/** The result of `read`; undefined if it rejects the input with a declared error. Other errors are findings. */
export function readOrReject<T>(read: () => T, ...declared: readonly Declared[]): T | undefined {
  try {
    return read();
  } catch (thrown) {
    if (isDeclared(thrown, declared)) return undefined;
    throw thrown;
  }
}

function isDeclared(thrown: unknown, declared: readonly Declared[]): boolean {
  // A stack overflow is a RangeError, too, and never an answer to an input.
  if (!(thrown instanceof Error) || /call stack/.test(thrown.message)) return false;
  return declared.some((one) => (one instanceof RegExp ? one.test(thrown.message) : thrown instanceof one));
}
