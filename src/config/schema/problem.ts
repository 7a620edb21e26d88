/** What is wrong with a piece of user configuration. Checks return problems; they never throw. */
export interface Problem {
  /** Path inside the object, such as `spec.http[0].route`; empty for the object as a whole. */
  readonly field: string;
  /** What is wrong and what is allowed; no full stop. */
  readonly message: string;
  /** An error keeps the object out of the mesh; a warning does not. */
  readonly severity: "error" | "warning";
}

/** Where an object was read. */
export interface Origin {
  readonly file: string;
  /** Counted from 1: the first line of the object's document. */
  readonly line: number;
}

/** A value, if there were no errors, and all problems found on the way. */
export interface Parsed<T> {
  readonly value: T | undefined;
  readonly problems: readonly Problem[];
}

/** A problem that keeps the object out of the mesh. */
export function error(field: string, message: string): Problem {
  return { field, message, severity: "error" };
}

/** A warning about something that is ignored, where ignoring it is not safe. */
export function asError({ field, message }: Problem): Problem {
  return error(field, message.replace(/: ignored\b/, ""));
}

/** A problem that does not. */
export function warning(field: string, message: string): Problem {
  return { field, message, severity: "warning" };
}
