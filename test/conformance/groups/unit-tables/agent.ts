/** Tables about the agent's environment, its proxy configuration, its node and its platform. */
import { parseAgentConfig } from "#agent/agent-config.ts";
import { parseDownwardApi } from "#agent/downward-api.ts";
import { activeConnections } from "#agent/envoy/active-connections.ts";
import { splitLogLevel } from "#agent/envoy/arguments.ts";
import { nodeId, type ProxyType } from "#agent/node.ts";
import { azureFacts } from "#agent/platform/azure.ts";
import { regionOfZone } from "#agent/platform/gcp.ts";
import { readProxyConfig } from "#config/proxy-config/proxy-config.ts";
import { compareJson } from "../../compare.ts";
import { byRow, unitTables } from "../../unit-tables.ts";

interface Proxy {
  readonly Type: ProxyType;
  readonly IPAddresses: readonly string[];
  readonly ID: string;
  readonly DNSDomain: string;
}

const PORTS = { envoyStatusPort: 15021, envoyPrometheusPort: 15090 };

export const agentTables = unitTables(
  "unit tables: agent",
  ["pilot/cmd/pilot-agent", "pkg/bootstrap", "pkg/envoy", "pkg/istio-agent"],
  {
    extractCAHeadersFromEnv: byRow<{ envVars: Record<string, string>; expectedCAHeaders: unknown }>(
      ({ envVars, expectedCAHeaders }) =>
        compareJson(parseAgentConfig(envVars).config.identity.caHeaders, expectedCAHeaders),
    ),
    "ConstructProxyConfig / GetMeshConfig(file, annotation, env)": byRow<{
      file: string;
      annotation: string;
      environment: string;
      expect: unknown;
    }>(async ({ file, annotation, environment, expect }) => {
      const { config } = await readProxyConfig({
        meshFile: { path: "mesh", text: file },
        environment,
        annotations: { "proxy.istio.io/config": annotation },
      });
      return compareJson(config, expect);
    }),
    ParseDownwardAPI: byRow<{ m: Record<string, string> }>(({ m }) => {
      const lines = Object.entries(m).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
      return compareJson({ ...parseDownwardApi(lines.join("\n")).values }, m);
    }),
    "azure platform metadata": byRow<{ response: string; metadata: unknown }>(({ response, metadata }) =>
      compareJson(azureFacts(response).metadata, metadata),
    ),
    zoneToRegion: byRow<{ zone: string; wantRegion: string; wantErr: boolean }>(({ zone, wantRegion, wantErr }) =>
      compareJson(regionOfZone(zone), wantErr ? undefined : wantRegion),
    ),
    "active connection count from Envoy stats": byRow<{ stats: string; expected: number }>(({ stats, expected }) =>
      compareJson(activeConnections(stats, PORTS), expected < 0 ? undefined : expected),
    ),
    splitComponentLog: byRow<{ input: string; log: string; components?: unknown }>(({ input, log, components = [] }) =>
      compareJson(splitLogLevel(input), { level: log, components }),
    ),
    "Proxy.ServiceNode()": byRow<{ in: Proxy; out: string }>(({ in: proxy, out }) =>
      compareJson(
        nodeId({ type: proxy.Type, name: proxy.ID, dnsDomain: proxy.DNSDomain, addresses: proxy.IPAddresses }),
        out,
      ),
    ),
  },
);
