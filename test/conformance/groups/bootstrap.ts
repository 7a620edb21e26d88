/** Envoy's bootstrap from environment, annotations and ProxyConfig. */
import { join } from "node:path";
import { envoyBootstrap } from "#agent/bootstrap/bootstrap.ts";
import { type NodeInput, proxyNode } from "#agent/node.ts";
import type { ProxyConfig } from "#config/proxy-config/proxy-config.ts";
import { compareJson } from "../compare.ts";
import { type Case, type Group, readJson } from "../harness.ts";

interface BootstrapCase {
  readonly name: string;
  readonly env: readonly string[];
  readonly podAnnotationsFile: Readonly<Record<string, string>>;
  readonly proxyConfig: ProxyConfig;
  readonly expected: string;
  readonly checkLocality: boolean;
}

interface Data {
  readonly common: {
    readonly nodeId: string;
    readonly instanceIPs: readonly string[];
    readonly pilotSubjectAltName: readonly string[];
    readonly envoyStatusPort: number;
    readonly envoyPrometheusPort: number;
    readonly workloadIdentitySocketFile: string;
    readonly outlierLogPath: string;
    readonly binaryVersion: string;
  };
  readonly cases: readonly BootstrapCase[];
}

export const bootstrap: Group = {
  name: "bootstrap goldens",
  cases: async (folder) => {
    const at = join(folder, "pkg/bootstrap");
    const data = await readJson<Data>(at, "cases.json");
    return (data?.cases ?? []).map((one): Case => ({ name: one.name, check: () => check(one, data as Data, at) }));
  },
};

async function check(one: BootstrapCase, { common }: Data, at: string) {
  const env = environment(one.env);
  const input: NodeInput = {
    id: common.nodeId,
    addresses: common.instanceIPs,
    pilotSubjectAltNames: common.pilotSubjectAltName,
    env,
    proxyConfig: one.proxyConfig,
    podAnnotations: one.podAnnotationsFile,
    envoyStatusPort: common.envoyStatusPort,
    envoyPrometheusPort: common.envoyPrometheusPort,
    workloadIdentitySocketFile: common.workloadIdentitySocketFile,
    outlierLogPath: common.outlierLogPath,
    version: common.binaryVersion,
    exitOnZeroActiveConnections: false,
    skipDeprecatedLogs: false,
    stsPort: 0,
  };
  const { bootstrap: actual } = envoyBootstrap({
    ...input,
    node: proxyNode(input),
    logAsJson: false,
    dualStack: false,
    statusPortProxyProtocol: false,
    hostIp: env.HOST_IP ?? "",
    deltaXds: true,
    xdsRootCert: "",
    fips: false,
    stripFragment: true,
  });
  return compareJson(masked(actual, one), masked(await readJson(at, one.expected), one));
}

/** As getenv does, the first of two equal names counts. */
function environment(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(entries.toReversed().map((entry) => entry.split(/=(.*)/s).slice(0, 2)));
}

/** Paths differ by where a case ran. */
function masked(bootstrap: unknown, { proxyConfig }: BootstrapCase): unknown {
  const text = JSON.stringify(bootstrap)
    .replaceAll(`"${proxyConfig.configPath}/XDS"`, '"/tmp/XDS"')
    .replaceAll(`"${proxyConfig.configPath}/lightstep_access_token.txt"`, '"/test-path/lightstep_access_token.txt"');
  return JSON.parse(text);
}
