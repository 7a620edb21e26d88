/** `proxy-config ecds`. */

import { formatGoTable } from "#lib/print/go-table.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { ConfigDump } from "./dump.ts";
import { listAt, objectAt, textAt } from "./json.ts";

const PREFIX = "type.googleapis.com/";

/** The table of extensions, by type and name. */
export function formatExtensions(dump: ConfigDump): string {
  const rows = listAt(dump.find("EcdsConfigDump"), "ecdsFilters")
    .flatMap((entry) => objectAt(entry, "ecdsFilter"))
    .map((extension) => ({ name: textAt(extension, "name"), type: textAt(extension, "typedConfig", "@type") }))
    .sort((one, other) => compareText(one.type, other.type) || compareText(one.name, other.name))
    .map(({ name, type }) => [name, type.startsWith(PREFIX) ? type.slice(PREFIX.length) : type]);
  return formatGoTable([["ECDS NAME", "TYPE"], ...rows], 5);
}
