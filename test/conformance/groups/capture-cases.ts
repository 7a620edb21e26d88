/** Files of cases about traffic capture: a configuration on top of a common one, and the text that comes out. */
import { type CaptureOptions, type GivenOptions, readOptions } from "#capture/settings/options.ts";
import { type CaptureSettings, parseCaptureSettings } from "#capture/settings/settings.ts";
import { type Case, type Outcome, readJson, readText } from "../harness.ts";

export type CaptureConfig = Readonly<Record<string, unknown>>;

interface CaptureCase {
  readonly name: string;
  readonly config: CaptureConfig;
  readonly expected?: string;
  readonly expectedLines?: readonly string[];
}

interface CaptureFile {
  readonly baseConfig: CaptureConfig;
  readonly cases: readonly CaptureCase[];
}

type Check = (config: CaptureConfig, expected: string) => Outcome | Promise<Outcome>;

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

/** All cases in the files of a folder. */
export async function captureCases(folder: string, check: Check): Promise<readonly Case[]> {
  const files = await Promise.all(["cases.json", "recorded.json"].map((name) => readJson<CaptureFile>(folder, name)));
  return files.flatMap((file) =>
    (file?.cases ?? []).map(({ name, config, expected, expectedLines }) => ({
      name,
      check: async () => {
        const wanted = expected === undefined ? expectedLines?.join("\n") : await readText(folder, expected);
        return check({ ...file?.baseConfig, ...config }, wanted ?? "");
      },
    })),
  );
}

/** Our settings for a configuration; the problem when we refuse it. */
export function settingsOf(config: CaptureConfig): { settings: CaptureSettings | undefined; problem: string } {
  const given: GivenOptions = Object.fromEntries(
    Object.entries(config).flatMap(([key, value]) => (OPTIONS[key] === undefined ? [] : [[OPTIONS[key], value]])),
  );
  const { value: settings, problems } = parseCaptureSettings(readOptions(given, {}).options, {
    ipv6: config.ENABLE_INBOUND_IPV6 === true,
    dnsServers: { v4: addresses(config.DNS_SERVERS_V4), v6: addresses(config.DNS_SERVERS_V6) },
    proxyUid: "1337",
  });
  return { settings, problem: JSON.stringify(problems) };
}

function addresses(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
