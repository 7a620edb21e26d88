/** Truth values as Go's strconv reads them. */
const VALUES: Readonly<Record<string, boolean>> = {
  "1": true,
  t: true,
  T: true,
  TRUE: true,
  true: true,
  True: true,
  "0": false,
  f: false,
  F: false,
  FALSE: false,
  false: false,
  False: false,
};

/** Undefined when the text is none of them. */
export function parseGoBool(text: string): boolean | undefined {
  return Object.hasOwn(VALUES, text) ? VALUES[text] : undefined;
}
