/** Labels and annotations as the downward API writes them into files: one `key="value"` per line, quoted as by Go's `%q`. */

import { unquoteGo } from "@mizzen/go-text/quoted-string";

export interface DownwardApiFile {
  /** Empty when there is a problem: half of a pod's annotations would mean something else than all of them. */
  readonly values: Readonly<Record<string, string>>;
  /** The first line that could not be read. */
  readonly problem: string | undefined;
}

export function parseDownwardApi(text: string): DownwardApiFile {
  const entries: [key: string, value: string][] = [];
  for (const [index, line] of text.split("\n").entries()) {
    const equals = line.indexOf("=");
    if (equals < 0) continue;
    const value = unquoteGo(line.slice(equals + 1));
    if (value === undefined) {
      return { values: {}, problem: `line ${index + 1}: the value must be quoted as by Go: ${line}` };
    }
    entries.push([line.slice(0, equals), value]);
  }
  return { values: Object.fromEntries(entries), problem: undefined };
}
