/** YAML text to data: several documents per text, each read on its own so that a broken one leaves the others alone. */
import { constructFromEvents, EVENT_ID, type Event, parseEvents, YAMLException } from "js-yaml";
import { errorText } from "../mesh-error.ts";
import { checkAliases } from "./aliases.ts";
import { KUBERNETES_SCHEMA } from "./schema.ts";

/** Something wrong at a line, counted from 1. */
export interface YamlProblem {
  readonly message: string;
  readonly line: number;
}

/** One document of a text. Lines are counted from the start of the whole text. */
export interface YamlDocument {
  /** Undefined when there is an error. */
  readonly value: unknown;
  readonly error: YamlProblem | undefined;
  /** Read, but hardly as meant: a key that is given twice. */
  readonly warning: YamlProblem | undefined;
  /** The first line with content. */
  readonly line: number;
  /** The text of this document alone, and the line it starts at: with these `lineOfPath` finds a field. */
  readonly text: string;
  readonly textLine: number;
}

/** Reads all documents of a text; those without content are left out. */
export function readDocuments(text: string): YamlDocument[] {
  if (text.includes("\0")) {
    return [{ ...nothing(text, 1), error: { message: "is not a text file", line: 1 } }];
  }
  return splitDocuments(text)
    .map(({ text: part, line }) => readPart(part, line))
    .filter((document) => document.value !== undefined || document.error !== undefined);
}

/** Reads a text of one document; its value is undefined when there is none. */
export function readDocument(text: string): YamlDocument {
  const [first, second] = readDocuments(text);
  if (second === undefined) return first ?? nothing(text, 1);
  return { ...nothing(text, 1), error: { message: "holds several documents: only one is allowed", line: second.line } };
}

/** The events of one document, with offsets into its text. */
export function eventsOf(text: string): Event[] {
  return parseEvents(text, { maxDepth: MAX_DEPTH });
}

/** Where an event starts in its text; -1 for those without a place. */
export function eventStart(event: Event): number {
  switch (event.type) {
    case EVENT_ID.MAPPING:
    case EVENT_ID.SEQUENCE:
      return event.start;
    case EVENT_ID.SCALAR:
      return event.valueStart;
    case EVENT_ID.ALIAS:
      return event.anchorStart;
    default:
      return -1;
  }
}

/** The number of the line, from 0, that holds an offset. */
export function lineAt(text: string, offset: number): number {
  let line = 0;
  for (let i = text.indexOf("\n"); i >= 0 && i < offset; i = text.indexOf("\n", i + 1)) line++;
  return line;
}

const MAX_DEPTH = 100;
const DUPLICATE_KEY = "duplicated mapping key";

function nothing(text: string, textLine: number): YamlDocument {
  return { value: undefined, error: undefined, warning: undefined, line: textLine, text, textLine };
}

function readPart(text: string, textLine: number): YamlDocument {
  try {
    const events = eventsOf(text);
    const start = events.map(eventStart).find((offset) => offset >= 0) ?? 0;
    const line = textLine + lineAt(text, start);
    const refused = checkAliases(events, text);
    if (refused !== undefined) {
      return {
        ...nothing(text, textLine),
        error: { message: refused.message, line: textLine + lineAt(text, refused.offset) },
      };
    }
    return { ...nothing(text, textLine), line, ...construct(events, text, textLine) };
  } catch (thrown) {
    return { ...nothing(text, textLine), error: problemOf(thrown, textLine) };
  }
}

/** Kubernetes tools take the last of two equal keys; so do we, and say so. */
function construct(events: Event[], source: string, textLine: number): Pick<YamlDocument, "value" | "warning"> {
  const options = { source, schema: KUBERNETES_SCHEMA };
  try {
    return { value: constructFromEvents(events, options)[0] ?? undefined, warning: undefined };
  } catch (thrown) {
    if (!(thrown instanceof YAMLException) || thrown.reason !== DUPLICATE_KEY) throw thrown;
    const { line } = problemOf(thrown, textLine);
    const value = constructFromEvents(events, { ...options, json: true })[0];
    return { value, warning: { message: "gives a key twice: the last one counts", line } };
  }
}

function problemOf(thrown: unknown, textLine: number): YamlProblem {
  if (!(thrown instanceof YAMLException)) return { message: `cannot be read: ${errorText(thrown)}`, line: textLine };
  return { message: `is not YAML: ${thrown.reason}`, line: textLine + (thrown.mark?.line ?? 0) };
}

/** A line that starts with three dashes ends a document wherever it stands, so cutting there needs no parser. */
function splitDocuments(text: string): { text: string; line: number }[] {
  const parts: { text: string; line: number }[] = [];
  let start = text.startsWith("\uFEFF") ? 1 : 0;
  let line = 1;
  const cut = (end: number) => {
    const part = text.slice(start, end);
    parts.push({ text: part, line });
    line += lineAt(part, part.length);
  };
  for (const separator of text.matchAll(/^---(?=[ \t\r\n]|$)/gm)) {
    cut(separator.index);
    start = separator.index + separator[0].length;
  }
  cut(text.length);
  return parts;
}
