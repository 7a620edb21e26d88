import { type Event, parseEvents, YAMLException } from "js-yaml";

/** Deeper than any object of the API; deeper nesting would only cost stack. */
const MAX_DEPTH = 100;
/** A document that needs more is not worth the time. */
const MAX_REPAIRS = 100;
const TOO_FAR_LEFT = "deficient indentation";
const PADDING = " ".repeat(40);

/** A document as a sequence of events that point into its text. */
export interface ParsedText {
  readonly events: Event[];
  /** The text that was parsed: equal to the given one apart from blanks at the start of lines. */
  readonly text: string;
}

/**
 * Parses one document. Go's parser lets the closing bracket of a list stand right below the key, and people write it so;
 * YAML proper wants it further right. Inside brackets blanks have no meaning, so such lines are moved.
 */
export function parseText(text: string): ParsedText {
  let repaired = text;
  for (let repairs = 0; ; repairs++) {
    try {
      return { events: parseEvents(repaired, { maxDepth: MAX_DEPTH }), text: repaired };
    } catch (thrown) {
      const isTooFarLeft = thrown instanceof YAMLException && thrown.reason === TOO_FAR_LEFT;
      if (!isTooFarLeft || thrown.mark === undefined || repairs === MAX_REPAIRS) throw thrown;
      const lineStart = thrown.mark.position - thrown.mark.column;
      repaired = repaired.slice(0, lineStart) + PADDING + repaired.slice(lineStart);
    }
  }
}
