/** Where things stand in a YAML text. */
import { EVENT_ID, type Event, getScalarValue } from "js-yaml";
import { type ParsedText, parseText } from "./events.ts";

/** The line, counted from 1, that holds an offset. */
export function lineAt(text: string, offset: number): number {
  let line = 1;
  for (let i = text.indexOf("\n"); i >= 0 && i < offset; i = text.indexOf("\n", i + 1)) line++;
  return line;
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

/**
 * The line of the value at a path of keys and indexes in a text of one document, or of the nearest parent that is there.
 * Keys are found in camelCase as well as in snake_case. Meant for the rare case that something is reported.
 */
export function lineOfPath(text: string, path: readonly (string | number)[]): number {
  const parsed = parseText(text);
  const { events } = parsed;
  let at = 1;
  let best = eventStart(events[at] ?? NO_EVENT);
  for (const step of path) {
    const found = childAt(parsed, at, step);
    if (found === undefined) break;
    best = eventStart(events[found.place] ?? NO_EVENT);
    at = found.value;
  }
  return lineAt(parsed.text, Math.max(best, 0));
}

const NO_EVENT: Event = { type: EVENT_ID.POP };

/** Indexes of the events of a child: where it is seen to stand (its key), and where its value starts. */
function childAt(
  source: ParsedText,
  parent: number,
  step: string | number,
): { place: number; value: number } | undefined {
  const { events } = source;
  const type = events[parent]?.type;
  let at = parent + 1;
  for (let i = 0; at < events.length && events[at]?.type !== EVENT_ID.POP; i++) {
    if (type === EVENT_ID.SEQUENCE) {
      if (i === step) return { place: at, value: at };
      at = afterNode(events, at);
    } else if (type === EVENT_ID.MAPPING) {
      const value = afterNode(events, at);
      if (isKey(source, at, String(step))) return { place: at, value };
      at = afterNode(events, value);
    } else return undefined;
  }
  return undefined;
}

function isKey({ events, text }: ParsedText, at: number, name: string): boolean {
  const event = events[at];
  return event?.type === EVENT_ID.SCALAR && comparable(getScalarValue(text, event)) === comparable(name);
}

function comparable(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

/** The index behind the node that starts at `at`. */
function afterNode(events: readonly Event[], at: number): number {
  let depth = 0;
  for (let i = at; i < events.length; i++) {
    const type = events[i]?.type;
    if (type === EVENT_ID.MAPPING || type === EVENT_ID.SEQUENCE) depth++;
    else if (type === EVENT_ID.POP) depth--;
    if (depth === 0) return i + 1;
  }
  return events.length;
}
