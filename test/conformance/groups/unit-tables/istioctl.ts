/** Tables about what istioctl prints of a proxy. */
import type { JsonObject } from "@bufbuild/protobuf";
import { isWantedListener } from "#cli/proxy-config/dump/listeners.ts";
import { describeDomains } from "#cli/proxy-config/dump/routes.ts";
import { formatSecrets } from "#cli/proxy-config/dump/secrets.ts";
import { compareJson } from "../../compare.ts";
import { byRow, leftOut, unitTables } from "../../unit-tables.ts";

interface FilterRow {
  readonly inFilter: { readonly Address?: string; readonly Port?: number; readonly Type?: string };
  readonly inListener: JsonObject;
  readonly expect: boolean;
}

interface SecretsRow {
  readonly items?: readonly SecretDump[] | null;
  /** 1 is a table. */
  readonly format: number;
  readonly expected?: readonly string[] | null;
  readonly unexpected?: readonly string[] | null;
}

interface SecretDump {
  readonly Name: string;
  readonly State?: string;
  readonly Type?: string;
  readonly Valid?: boolean;
  readonly SerialNumber?: string;
  readonly NotAfter?: string;
  readonly NotBefore?: string;
}

export const istioctlTables = unitTables("unit tables: istioctl", ["istioctl/pkg/writer"], {
  describeRouteDomains: byRow<{ domains?: readonly string[] | null; expected?: string }>(({ domains, expected = "" }) =>
    compareJson(describeDomains(domains ?? []), expected),
  ),
  "ListenerFilter.Verify": byRow<FilterRow>(({ inFilter, inListener, expect }) => {
    const filter = { address: inFilter.Address, port: inFilter.Port, type: inFilter.Type };
    return compareJson(isWantedListener(inListener, filter), expect);
  }),
  "SDS writer (secret table)": byRow<SecretsRow>(({ items, format, expected, unexpected }) => {
    if (format !== 1) return { leftOut: "no command of istioctl prints secrets in this form" };
    const table = formatSecrets((items ?? []).map(secretOf));
    const missing = (expected ?? []).filter((text) => !table.includes(text));
    const extra = (unexpected ?? []).filter((text) => table.includes(text));
    return compareJson({ missing, extra }, { missing: [], extra: [] });
  }),
  "SDS writer (diff)": leftOut("no command of istioctl prints it"),
});

function secretOf(dump: SecretDump) {
  return {
    name: dump.Name,
    state: dump.State ?? "",
    type: dump.Type ?? "",
    valid: dump.Valid === true,
    serialNumber: dump.SerialNumber ?? "",
    notAfter: dump.NotAfter ?? "",
    notBefore: dump.NotBefore ?? "",
    trustDomain: "",
  };
}
