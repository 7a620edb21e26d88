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
  return new Places(text).line(path);
}

/** Finds many lines in one text, which is parsed when the first is asked for. */
export class Places {
  readonly #text: string;
  #parsed: ParsedText | undefined;
  #lineEnds: readonly number[] = [];
  /** By the event of a list, those of its items: a list of thousands is not gone through for each of them. */
  readonly #items = new Map<number, readonly number[]>();
  /** The same for maps. */
  readonly #fields = new Map<number, ReadonlyMap<string, Child>>();

  constructor(text: string) {
    this.#text = text;
  }

  /** The line of the value at a path, as by `lineOfPath`. */
  line(path: readonly (string | number)[]): number {
    const { events } = this.#parse();
    let at = 1;
    let best = eventStart(events[at] ?? NO_EVENT);
    for (const step of path) {
      const isItem = typeof step === "number" && events[at]?.type === EVENT_ID.SEQUENCE;
      const found = isItem ? this.#itemAt(at, step) : this.#fieldAt(at, step);
      if (found === undefined) break;
      best = eventStart(events[found.place] ?? NO_EVENT);
      at = found.value;
    }
    return this.#lineAt(Math.max(best, 0));
  }

  #parse(): ParsedText {
    if (this.#parsed === undefined) {
      this.#parsed = parseText(this.#text);
      this.#lineEnds = Array.from(this.#parsed.text.matchAll(/\n/g), ({ index }) => index);
    }
    return this.#parsed;
  }

  #itemAt(list: number, index: number): Child | undefined {
    const items = this.#items.get(list) ?? itemsOf(this.#parse().events, list);
    this.#items.set(list, items);
    const at = items[index];
    return at === undefined ? undefined : { place: at, value: at };
  }

  #fieldAt(parent: number, step: string | number): Child | undefined {
    const fields = this.#fields.get(parent) ?? fieldsOf(this.#parse(), parent);
    this.#fields.set(parent, fields);
    return fields.get(comparable(String(step)));
  }

  #lineAt(offset: number): number {
    let [low, high] = [0, this.#lineEnds.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#lineEnds[middle] ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  }
}

const NO_EVENT: Event = { type: EVENT_ID.POP };

/** Indexes of the events of a child: where it is seen to stand (its key), and where its value starts. */
interface Child {
  readonly place: number;
  readonly value: number;
}

function itemsOf(events: readonly Event[], list: number): readonly number[] {
  const items: number[] = [];
  for (let at = list + 1; at < events.length && events[at]?.type !== EVENT_ID.POP; at = afterNode(events, at)) {
    items.push(at);
  }
  return items;
}

/** By the comparable forms of their names; of equal ones the first. */
function fieldsOf({ events, text }: ParsedText, parent: number): ReadonlyMap<string, Child> {
  const fields = new Map<string, Child>();
  if (events[parent]?.type !== EVENT_ID.MAPPING) return fields;
  let at = parent + 1;
  for (let event = events[at]; event !== undefined && event.type !== EVENT_ID.POP; event = events[at]) {
    const value = afterNode(events, at);
    const name = event.type === EVENT_ID.SCALAR ? comparable(getScalarValue(text, event)) : undefined;
    if (name !== undefined && !fields.has(name)) fields.set(name, { place: at, value });
    at = afterNode(events, value);
  }
  return fields;
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
