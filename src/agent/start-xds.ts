/** Serves Envoy's xDS socket, with everything that shares the streams to the control plane. */
import { errorText } from "#lib/mesh-error.ts";
import { NAME_TABLE_TYPE, PROXY_CONFIG_TYPE } from "#protocol/messages/type-urls.ts";
import type { AgentContext } from "./agent-context.ts";
import type { ControlPlaneOptions } from "./control-plane.ts";
import type { MeshResolver } from "./dns/resolver.ts";
import { probe } from "./health/probe.ts";
import { readinessProbe } from "./health/readiness-probe.ts";
import { HealthWatch } from "./health/workload-health.ts";
import type { TrustBundle } from "./sds/trust-bundle.ts";
import { EnvoyReadiness } from "./status/envoy-readiness.ts";
import { connectToApplication } from "./status/probes/connect.ts";
import { serveUnix } from "./unix-server.ts";
import type { UnixSocket } from "./unix-socket.ts";
import { extensionConverter } from "./wasm/converter.ts";
import { caCertificates } from "./xds-proxy/proxy-config-resource.ts";
import { XdsProxy, type XdsProxyOptions } from "./xds-proxy/service.ts";

/** What takes the types that end in the agent. */
export interface XdsParts {
  /** Undefined without DNS. */
  readonly resolver: MeshResolver | undefined;
  readonly trustBundle: TrustBundle;
  readonly upstream: ControlPlaneOptions;
  readonly socket: UnixSocket;
}

export async function startXds(context: AgentContext, parts: XdsParts, running: Promise<void>[]): Promise<void> {
  const { config, log, metrics, done } = context;
  const scoped = log.scope("xdsproxy");
  const upstream = { ...parts.upstream, keepalive: config.xds.keepalive };
  const health = healthWatch(context);
  if (health !== undefined) running.push(health.run(done));
  scoped.info(`Initializing with upstream address "${upstream.address}" and cluster "${config.clusterId}"`);
  const proxy = new XdsProxy({
    upstream,
    ownTypes: ownTypes(context, parts),
    convertExtensions:
      config.xds.wasm && extensionConverter({ ...context, config: config.xds.wasm, proxies: config.proxies }),
    health,
    log: scoped,
    metrics,
  });
  running.push(proxy.run(done));
  if (!config.envoy.disabled) running.push(proxy.connectAhead(done));
  const failed = (error: Error) => scoped.error(`failed to accept downstream gRPC connection ${errorText(error)}`);
  await serveUnix(parts.socket, [proxy.service], { signal: done, failed, ...config.xds.limits });
  await serveDebug(context, upstream);
}

function ownTypes({ config, log }: AgentContext, { resolver, trustBundle }: XdsParts): XdsProxyOptions["ownTypes"] {
  const types = new Map<string, (resource: Uint8Array) => void>();
  if (resolver !== undefined) {
    const dnsLog = log.scope("dns");
    types.set(NAME_TABLE_TYPE, (table) => {
      resolver.update(table);
      dnsLog.debug("updated lookup table", { names: resolver.size });
    });
  }
  if (config.xds.dynamicProxyConfig)
    types.set(PROXY_CONFIG_TYPE, (resource) => trustBundle.update(caCertificates(resource)));
  return types;
}

/** The workload is ready when Envoy, if it has one, is and the application says so; only a configured probe is told to anybody. */
function healthWatch({ config, proxyConfig, addresses, admin, place, log, localhost }: AgentContext) {
  const wanted = readinessProbe(proxyConfig);
  if (wanted === undefined) return undefined;
  const { method, timeoutMs, ...timing } = wanted;
  const envoy = new EnvoyReadiness(admin);
  const host = config.status.legacyLocalhostProbes ? localhost : (addresses[0] ?? localhost);
  const connect = place.connect ?? connectToApplication(localhost);
  const check = async () => {
    const problem = config.envoy.disabled ? undefined : await envoy.problem();
    if (problem !== undefined) throw new Error(problem);
    if (method !== undefined) await probe(method, { host, timeoutMs, connect, enter: place.enter });
  };
  return new HealthWatch({ ...timing, probe: check, log: log.scope("healthcheck") });
}

/** Without this port a proxy works as well, and another may have it. */
async function serveDebug(context: AgentContext, upstream: ControlPlaneOptions): Promise<void> {
  const { config, log, localhost, node, done, place } = context;
  const { debugPort: port } = config.xds;
  if (port === undefined || place.connect !== undefined) return;
  const { startDebugTap } = await import("./xds-proxy/debug-tap.ts");
  try {
    const tap = await startDebugTap({ host: localhost, port, upstream, namespace: node.namespace });
    done.addEventListener("abort", () => tap.close(), { once: true });
  } catch (thrown) {
    log.warn(
      `failed to start istio tap server: ${errorText(thrown)}; the control plane's debug pages are not served here`,
    );
  }
}
