/** `proxy-config bootstrap`, in short. */
import { formatGoTable } from "#lib/print/go-table.ts";
import type { ConfigDump } from "./dump.ts";
import { at, numberAt, textAt } from "./json.ts";

/** The versions of Istio, of its proxy and of Envoy, as far as the dump tells. */
export function formatVersions(dump: ConfigDump): string {
  const node = at(dump.section("BootstrapConfigDump"), "bootstrap", "node");
  const proxy = textAt(node, "metadata", "ISTIO_PROXY_SHA");
  const build = at(node, "userAgentBuildVersion");
  const version = ["majorNumber", "minorNumber", "patch"].map((part) => numberAt(build, "version", part)).join(".");
  const label = textAt(build, "metadata", "build.label");
  const notes = ["revision.status", "build.type", "ssl.version"].flatMap((name) => {
    const note = at(build, "metadata", name);
    return typeof note === "string" ? `/${note}` : [];
  });
  const rows = [
    ["Istio Version:", textAt(node, "metadata", "ISTIO_VERSION")],
    ["Istio Proxy Version:", proxy.split(":")[1] ?? proxy],
    ["Envoy Version:", `${version}${label && `-${label}`}${notes.join("")}`],
  ];
  return formatGoTable(
    rows.filter(([, value]) => value !== ""),
    1,
  );
}
