/** A boolean as Go's ParseBool reads it, by which Istio reads flags, variables and annotations; undefined for other texts. */
export function parseGoBool(text: string): boolean | undefined {
  if (/^(1|t|T|true|TRUE|True)$/.test(text)) return true;
  return /^(0|f|F|false|FALSE|False)$/.test(text) ? false : undefined;
}
