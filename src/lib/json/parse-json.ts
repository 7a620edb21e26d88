/** Beyond it, writing a value out again ends with an exhausted stack. */
const MAX_DEPTH = 1_000;

/** The value of JSON from an untrusted source. Throws a SyntaxError for text that is invalid or nested too deeply. */
export function parseJson(text: string, maxDepth = MAX_DEPTH): unknown {
  if (isDeeper(text, maxDepth)) throw new SyntaxError(`it is nested deeper than ${maxDepth}`);
  return JSON.parse(text);
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Counts brackets outside of strings in one pass, before anything is built from them. */
function isDeeper(json: string, maxDepth: number): boolean {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < json.length; i++) {
    const code = json.charCodeAt(i);
    if (inString) {
      if (code === BACKSLASH) i++;
      else if (code === QUOTE) inString = false;
    } else if (code === QUOTE) inString = true;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth++;
      if (depth > maxDepth) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth--;
  }
  return false;
}
