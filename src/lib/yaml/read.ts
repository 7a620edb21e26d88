/** YAML text to data: several documents per text, each read on its own so that a broken one leaves the others alone. */
import { constructFromEvents, EVENT_ID, YAMLException } from "js-yaml";
import { errorText } from "../mesh-error.ts";
import { checkAliases, type Refusal } from "./aliases.ts";
import { type ParsedText, parseText } from "./events.ts";
import { eventStart, lineAt } from "./places.ts";
import { KUBERNETES_SCHEMA } from "./schema.ts";

/** Something wrong at a line, counted from 1. */
export interface YamlProblem {
  readonly message: string;
  readonly line: number;
}

/** One document. Lines are counted from 1 at the start of the text it was read from. */
export interface YamlDocument {
  /** Undefined when there is an error or no content. */
  readonly value: unknown;
  readonly error: YamlProblem | undefined;
  /** Read, but hardly as meant: a key that is given twice. */
  readonly warning: YamlProblem | undefined;
  /** The first line with content. */
  readonly line: number;
}

/** Reads all documents of a text; those without content are left out. */
export function readDocuments(text: string): YamlDocument[] {
  return splitDocuments(text)
    .map((part) => moved(readDocument(part.text), part.line - 1))
    .filter(({ value, error }) => value !== undefined || error !== undefined);
}

/** Reads a text that holds one document. */
export function readDocument(text: string): YamlDocument {
  if (text.includes("\0")) return { ...EMPTY, error: { message: "is not a text file", line: 1 } };
  try {
    const parsed = parseText(text);
    const refused = checkAliases(parsed) ?? checkSingle(parsed);
    if (refused !== undefined) {
      return { ...EMPTY, error: { message: refused.message, line: lineAt(parsed.text, refused.offset) } };
    }
    const start = parsed.events.map(eventStart).find((offset) => offset >= 0) ?? 0;
    return { ...EMPTY, ...construct(parsed), line: lineAt(parsed.text, start) };
  } catch (thrown) {
    return { ...EMPTY, error: problemOf(thrown) };
  }
}

/**
 * Cuts a text into documents, each with the line it starts at. A line that starts with three dashes ends a document
 * wherever it stands, so this needs no parser.
 */
export function splitDocuments(text: string): { readonly text: string; readonly line: number }[] {
  const parts: { text: string; line: number }[] = [];
  let start = text.startsWith("\uFEFF") ? 1 : 0;
  let line = 1;
  const cut = (end: number) => {
    const part = text.slice(start, end);
    parts.push({ text: part, line });
    line += lineAt(part, part.length) - 1;
  };
  for (const separator of text.matchAll(/^---(?=[ \t\r\n]|$)/gm)) {
    cut(separator.index);
    start = separator.index + separator[0].length;
  }
  cut(text.length);
  return parts;
}

const DUPLICATE_KEY = "duplicated mapping key";
const EMPTY: YamlDocument = { value: undefined, error: undefined, warning: undefined, line: 1 };

/** What stands behind the first document must be empty: a text may end with `---`. */
function checkSingle({ events, text }: ParsedText): Refusal | undefined {
  const content = events.find(
    (event, i) => i > 1 && events[i - 1]?.type === EVENT_ID.DOCUMENT && eventStart(event) >= 0,
  );
  if (content === undefined) return undefined;
  const offset = eventStart(content);
  const [, marker] = [...text.slice(0, offset).matchAll(/^(---|\.\.\.)(?=\s|$)/gm)].at(-1) ?? [];
  // Tools of Kubernetes pass over what stands behind the end of a document, so nobody may rely on it.
  return marker === "..."
    ? { message: 'goes on behind "...", which ends a document: begin the next one with a line "---"', offset }
    : { message: "holds several documents: only one is allowed", offset };
}

/** Kubernetes tools take the last of two equal keys; so do we, and say so. */
function construct({ events, text: source }: ParsedText): Pick<YamlDocument, "value" | "warning"> {
  const options = { source, schema: KUBERNETES_SCHEMA };
  try {
    return { value: constructFromEvents(events, options)[0] ?? undefined, warning: undefined };
  } catch (thrown) {
    if (!(thrown instanceof YAMLException) || thrown.reason !== DUPLICATE_KEY) throw thrown;
    const value = constructFromEvents(events, { ...options, json: true })[0];
    return { value, warning: { message: "gives a key twice: the last one counts", line: problemOf(thrown).line } };
  }
}

function problemOf(thrown: unknown): YamlProblem {
  if (!(thrown instanceof YAMLException)) return { message: `cannot be read: ${errorText(thrown)}`, line: 1 };
  return { message: `is not YAML: ${thrown.reason}`, line: (thrown.mark?.line ?? 0) + 1 };
}

function moved({ value, error, warning, line }: YamlDocument, lines: number): YamlDocument {
  const move = (problem: YamlProblem | undefined) => problem && { ...problem, line: problem.line + lines };
  return { value, error: move(error), warning: move(warning), line: line + lines };
}
