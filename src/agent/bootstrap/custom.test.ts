import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { DEFAULT_PROXY_CONFIG } from "#config/proxy-config/proxy-config.ts";
import { type NodeInput, proxyNode } from "../node.ts";
import { renderBootstrap } from "./custom.ts";
import type { BootstrapInput } from "./input.ts";

const MORE_CONFIG = {
  tracing: { zipkin: { address: "$(HOST_IP):9411" }, sampling: 1.5 },
  gatewayTopology: { numTrustedProxies: 2 },
  statsCompression: false,
};

function input(more: Partial<NodeInput> = {}): BootstrapInput {
  const node: NodeInput = {
    id: "router~10.0.0.1~gw.ns~ns.svc.cluster.local",
    addresses: ["10.0.0.1", "fd00::1"],
    env: {
      POD_NAMESPACE: "ns",
      ISTIO_META_MESH_ID: "m",
      ISTIO_META_DNS_CAPTURE: "false",
      ISTIO_META_HTTP10: "1",
      ISTIO_META_REQUESTED_NETWORK_VIEW: "a,b",
      ISTIO_META_POD_PORTS: '[{"name":"web","containerPort":80},{"containerPort":81,"protocol":"TCP"}]',
      ISTIO_META_MINE: "7",
    },
    proxyConfig: { ...DEFAULT_PROXY_CONFIG, ...MORE_CONFIG },
    podLabels: { app: "gw", "istio-locality": "r.z" },
    pilotSubjectAltNames: ["istiod.istio-system.svc"],
    envoyStatusPort: 15021,
    envoyPrometheusPort: 15090,
    exitOnZeroActiveConnections: false,
    skipDeprecatedLogs: true,
    workloadIdentitySocketFile: "socket",
    outlierLogPath: "",
    stsPort: 0,
    version: "1.29.6",
    ...more,
  };
  return {
    ...node,
    node: proxyNode(node),
    logAsJson: false,
    dualStack: true,
    deltaXds: true,
    xdsRootCert: "",
    statusPortProxyProtocol: false,
    hostIp: "192.0.2.1",
    fips: false,
    stripFragment: true,
  };
}

async function render(t: TestContext, source: string, more?: Partial<NodeInput>): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "custom-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "bootstrap.tmpl");
  writeFileSync(file, source);
  return renderBootstrap(file, input(more), { HOME_OF: "here" });
}

for (const [source, expected] of [
  ["{{ .nodeID }} {{ .nodeType }} {{ .cluster }}", "router~10.0.0.1~gw.ns~ns.svc.cluster.local router gw.ns"],
  ["{{ .region }}/{{ .zone }}{{ if .sub_zone }}x{{ end }}", "r/z"],
  ["{{ .config.ProxyAdminPort }} {{ .config.StatusPort }} {{ .config.ConfigPath }}", "15000 15020 ./etc/istio/proxy"],
  ["{{ .config.DrainDuration }}|{{ .config.StatsdUdpAddress }}|{{ .config.Concurrency }}", "seconds:45||<nil>"],
  ["{{ .config.DrainDuration.Seconds }} {{ .config.DrainDuration.AsDuration }}", "45 45s"],
  ["{{ .config.GatewayTopology.NumTrustedProxies }} {{ .config.StatsCompression.Value }}", "2 false"],
  ["{{ .config.StatsCompression }} {{ .config.FileFlushInterval.AsDuration }}", " 0s"],
  ["{{ .config.Tracing.GetZipkin.Address }} {{ .config.Tracing.Sampling }}", "$(HOST_IP):9411 1.5"],
  ["{{ .config.ClusterName.ServiceCluster }} {{ .config.InterceptionMode }}", "istio-proxy REDIRECT"],
  ["{{ if .config.ProxyHeaders }}set{{ end }}{{ .config.ProxyMetadata.No }}", "<no value>"],
  ['{{ index .config.ProxyMetadata "A" }}{{ if .config.RuntimeValues }}set{{ end }}|', "|"],
  [`{{ env "HOME_OF" }} {{ env "NO" }}|{{ expandenv "$HOME_OF/\${HOME_OF}/$NO" }}`, "here |here/here/"],
  [`{{ expandenv "$$HOME_OF $1x \${} \${HOME_OF $ a$-b" }}`, "HOME_OF x  HOME_OF $ ab"],
  [
    "{{ .localhost }} {{ .wildcard }} {{ .additional_localhost }} {{ .dns_lookup_family }}",
    "127.0.0.1 0.0.0.0 ::1 ALL",
  ],
  ["{{ .zipkin }} {{ .statsd }}", '{"address":"192.0.2.1","port_value":9411} <no value>'],
  ["{{ .pilot_SAN }} {{ .discovery_host }}", '[{"exact":"istiod.istio-system.svc"}] istiod.istio-system.svc'],
  ["{{ range .inclusionSuffix }}{{ . }},{{ end }}", "rbac.allowed,rbac.denied,shadow_allowed,shadow_denied,"],
  ['{{ .metadata.MeshID }} {{ .metadata.Labels.app }} {{ index .metadata.Labels "no" }}|', "m gw |"],
  [
    "{{ with .metadata }}{{ .DNSCapture }} {{ .EnvoySkipDeprecatedLogs }} {{ .ExitOnZeroActiveConnections }}{{ end }}",
    "false true false",
  ],
  ["{{ if .metadata.DNSCapture }}captures{{ end }}{{ if .metadata.MetadataDiscovery }}set{{ end }}", "set"],
  ["{{ .metadata.MetadataDiscovery }} {{ .metadata.HTTP10 }} {{ .metadata.XDSRootCert }}|", "false 1 |"],
  ["{{ .metadata.RequestedNetworkView }} {{ .metadata.Raw.MESH_ID }} {{ .metadata.Raw.MINE }}", "[a b] m 7"],
  ["{{ range .metadata.PodPorts }}{{ .Name }}:{{ .ContainerPort }}{{ .Protocol }} {{ end }}", "web:80 :81TCP "],
  [
    "{{ (toJson .metadata | fromJson).INSTANCE_IPS }} {{ (toJson .config | fromJson).statusPort }}",
    "10.0.0.1,fd00::1 15020",
  ],
  ["{{ (fromJson .meta_json_str).NAMESPACE }} {{ toJson .histogram_buckets }}", "ns []"],
  ["{{ .envoy_status_port }} {{ .global_downstream_max_connections }} {{ .xds_type }}", "15021 2147483647 DELTA_GRPC"],
] as const) {
  test(`renderBootstrap() gives a template the values that Istio's agent gives: ${source}`, async (t) => {
    assert.equal(await render(t, source), expected);
  });
}

test("renderBootstrap() names file and line of what is wrong", async (t) => {
  await assert.rejects(render(t, "{\n{{ .config.NoSuchField }}"), (error: Error) => {
    assert.match(String(error.cause), /bootstrap\.tmpl:2: .*can't evaluate field NoSuchField/);
    return true;
  });
  await assert.rejects(render(t, "\n\n{{ if }}"), (error: Error) =>
    /:3: missing value for if/.test(String(error.cause)),
  );
  await assert.rejects(renderBootstrap("/nowhere/x", input(), {}), /Cannot read the bootstrap template \/nowhere\/x/);
});
