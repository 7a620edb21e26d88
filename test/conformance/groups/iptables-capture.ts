/** Settings of `istio-iptables` to the lines it would execute: upstream goldens and recorded mixes of flags. */
import { join } from "node:path";
import { applyCapture, logFinalState } from "#capture/apply.ts";
import { PLAIN_BACKENDS } from "#capture/backend.ts";
import { recordedCommands } from "#capture/commands.ts";
import { type CaptureOptions, type GivenOptions, readOptions } from "#capture/options.ts";
import { parseCaptureSettings } from "#capture/settings.ts";
import { SILENT } from "#lib/log.ts";
import { compareText } from "../compare.ts";
import { type Case, type Group, type Outcome, readJson, readText } from "../harness.ts";

type Config = Readonly<Record<string, unknown>>;

interface CaptureCase {
  readonly name: string;
  readonly config: Config;
  readonly expected?: string;
  readonly expectedLines?: readonly string[];
}

interface CaptureFile {
  readonly baseConfig: Config;
  readonly cases: readonly CaptureCase[];
}

/** Our option by the name it has in the data. */
const OPTIONS: Readonly<Record<string, keyof CaptureOptions>> = {
  PROXY_PORT: "proxyPort",
  INBOUND_CAPTURE_PORT: "inboundPort",
  INBOUND_TUNNEL_PORT: "tunnelPort",
  PROXY_UID: "proxyUid",
  PROXY_GID: "proxyGid",
  INBOUND_INTERCEPTION_MODE: "mode",
  INBOUND_TPROXY_MARK: "tproxyMark",
  INBOUND_TPROXY_ROUTE_TABLE: "tproxyTable",
  INBOUND_PORTS_INCLUDE: "inboundPorts",
  INBOUND_PORTS_EXCLUDE: "inboundPortsExcluded",
  OUTBOUND_IPRANGES_INCLUDE: "outboundRanges",
  OUTBOUND_IPRANGES_EXCLUDE: "outboundRangesExcluded",
  OUTBOUND_PORTS_INCLUDE: "outboundPorts",
  OUTBOUND_PORTS_EXCLUDE: "outboundPortsExcluded",
  OUTBOUND_OWNER_GROUPS_INCLUDE: "ownerGroups",
  OUTBOUND_OWNER_GROUPS_EXCLUDE: "ownerGroupsExcluded",
  KUBE_VIRT_INTERFACES: "virtualInterfaces",
  EXCLUDE_INTERFACES: "excludedInterfaces",
  HOST_IPV4_LOOPBACK_CIDR: "loopbackCidr",
  REDIRECT_DNS: "redirectDns",
  CAPTURE_ALL_DNS: "captureAllDns",
  DROP_INVALID: "dropInvalid",
  FORCE_APPLY: "forceApply",
};

export const iptablesCapture: Group = {
  name: "iptables capture",
  cases: async (folder) => {
    const at = join(folder, "tools/istio-iptables/pkg/capture");
    const files = await Promise.all(["cases.json", "recorded.json"].map((name) => readJson<CaptureFile>(at, name)));
    return files.flatMap((file) => (file?.cases ?? []).map((one) => captureCase(at, file?.baseConfig ?? {}, one)));
  },
};

function captureCase(at: string, base: Config, { name, config, expected, expectedLines }: CaptureCase): Case {
  return {
    name,
    check: async () => {
      const wanted = expected === undefined ? expectedLines?.join("\n") : await readText(at, expected);
      return checkLines({ ...base, ...config }, wanted ?? "");
    },
  };
}

async function checkLines(config: Config, expected: string): Promise<Outcome> {
  if (config.CLEANUP_ONLY === true) return { leftOut: "clean-up is one text of ours, not single commands" };
  const given: GivenOptions = Object.fromEntries(
    Object.entries(config).flatMap(([key, value]) => (OPTIONS[key] === undefined ? [] : [[OPTIONS[key], value]])),
  );
  const { value: settings, problems } = parseCaptureSettings(readOptions(given, {}).options, {
    ipv6: config.ENABLE_INBOUND_IPV6 === true,
    dnsServers: { v4: addresses(config.DNS_SERVERS_V4), v6: addresses(config.DNS_SERVERS_V6) },
    proxyUid: "1337",
  });
  if (settings === undefined) return { differs: () => JSON.stringify(problems) };
  const commands = recordedCommands();
  const input = { settings, backends: Object.values(PLAIN_BACKENDS), commands, log: SILENT, withoutRoutes: true };
  await applyCapture(input);
  await logFinalState(input);
  return compareText(commands.lines.join("\n"), expected);
}

function addresses(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
