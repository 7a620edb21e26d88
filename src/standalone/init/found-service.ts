/** A service of one's own, as far as files and processes tell about it. */
import { withoutEnds, withoutTrailing } from "@mizzen/go-text/trim";

export interface FoundService {
  readonly name: string;
  /** Undefined when nothing tells how it is started here, as for an image. */
  readonly command: readonly string[] | undefined;
  /** Relative to the folder. */
  readonly workingDir?: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  /** Names of services that must be ready before it. */
  readonly after: readonly string[];
  /** What told of it, for the comment. */
  readonly source: string;
}

/** The port of a service that says nothing else. */
export const DEFAULT_PORT = 8080;

/** A name as workloads and services have it; `fallback` when nothing of the text is left. */
export function nameFrom(text: string, fallback: string): string {
  const dashed = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const name = withoutTrailing(withoutEnds(dashed, "-").slice(0, 50), "-");
  return /^[a-z]/.test(name) ? name : name === "" ? fallback : `${fallback}-${name}`;
}

/** A command line as words, or as a line for the shell where it is more than words. */
export function wordsOf(line: string): readonly string[] {
  const text = line.trim();
  const plain = /^[\w./:@,+-]+( +[\w./:@,+=-]+)*$/.test(text);
  return plain
    ? text.split(/ +/)
    : ["sh", "-c", text.startsWith("exec ") || /[;&|]/.test(text) ? text : `exec ${text}`];
}
