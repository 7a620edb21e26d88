/** Pages under Istio's names. */
import { configz } from "./configz.ts";
import { endpointz } from "./endpointz.ts";
import { authorizationz, clusterz, mesh, networkz, pushContext, pushStatus, resourcesz } from "./mesh-pages.ts";
import type { DebugPage } from "./page.ts";
import { adsz, connections, forceDisconnect, instancesz } from "./proxies.ts";
import { pushes } from "./pushes.ts";
import { registryz } from "./registryz.ts";
import { configDump, ecdsz, edsz, ndsz } from "./resources.ts";
import { sidecarz } from "./sidecarz.ts";
import { syncz } from "./syncz.ts";

function page(name: string, help: string, content: DebugPage["content"]): DebugPage {
  return { path: `/debug/${name}`, help, content };
}

const PAGES: readonly DebugPage[] = [
  page(
    "adsz",
    "Connected proxies, what they said of themselves and what they watch; ?proxyID=NAME.NAMESPACE; ?push=true pushes",
    adsz,
  ),
  page("ambientz", "Workloads of ambient mode: not in effect yet", () => ({
    workloads: null,
    services: null,
    policies: null,
  })),
  page("authorizationz", "Authorization policies by namespace", authorizationz),
  page("ca", "Certificates of the mesh's authority and when they end", ({ authority }) => authority?.() ?? {}),
  page("cachez", "How many parts of configuration and resources are held for proxies", ({ held }) => held()),
  page("clusterz", "The clusters of the mesh, and how far they were read", clusterz),
  page(
    "config_dump",
    "What a proxy was sent, as its admin port would show it; ?proxyID=NAME.NAMESPACE&types=lds,cds or &include_eds",
    configDump,
  ),
  page("configz", "Objects of the configuration as last accepted", ({ source }, { scope }) =>
    configz(source.objects(), scope),
  ),
  page("connections", "Connected proxies", connections),
  page("ecdsz", "Extensions that a proxy was sent; ?proxyID=NAME.NAMESPACE", ecdsz),
  page("edsz", "Endpoints that a proxy was sent; ?proxyID=NAME.NAMESPACE", edsz),
  page("endpointShardz", "Endpoints by service and registry", ({ source }, { scope }) =>
    endpointz(source.current(), scope),
  ),
  page("endpointz", "The same under its older name", ({ source }, { scope }) => endpointz(source.current(), scope)),
  page("force_disconnect", "Ends the stream of a proxy; ?proxyID=NAME.NAMESPACE", forceDisconnect),
  page("inject", "Templates of injection", ({ templates }) => templates?.() ?? {}),
  page("instancesz", "The services that each connected proxy stands behind", instancesz),
  page("krtz", "Collections that istiod derives from others: the snapshot has none", () => []),
  page("mcsz", "Services of several clusters: none", () => null),
  page("mesh", "The mesh config in effect", mesh),
  page("ndsz", "The name table that a proxy was sent; ?proxyID=NAME.NAMESPACE", ndsz),
  page("networkz", "Gateways between networks", networkz),
  page("push_status", "What several objects claim, and which of them has it", pushStatus),
  page("pushcontext", "What pushes are made of", pushContext),
  page(
    "pushes",
    "The push journal: changes, and what was sent because of them; ?proxyID=NAME.NAMESPACE&change=ID",
    pushes,
  ),
  page("registryz", "Services known to the control plane", ({ source }, { scope }) =>
    registryz(source.current(), scope, source.objects()),
  ),
  page("resourcesz", "Kinds of objects that are in effect", resourcesz),
  page("settled", "Whether the newest state was sent to all connected proxies", ({ hasSentAll }) => ({
    settled: hasSentAll?.() ?? true,
  })),
  page("sidecarz", "What a proxy may see; ?proxyID=NAME.NAMESPACE", sidecarz),
  page("syncz", "What each connected proxy was sent and has acknowledged; ?namespace=NAMESPACE", syncz),
  page("telemetryz", "Telemetry objects by namespace", ({ source }) => ({
    telemetries: { namespace_to_telemetries: {}, root_namespace: source.current().mesh.rootNamespace },
  })),
];

/** In the order of the index. */
export const DEBUG_PAGES: readonly DebugPage[] = [
  ...PAGES,
  page("list", "Names of these pages", () => [...PAGES.map(({ path }) => path.slice("/debug/".length)), "list"].sort()),
].sort((a, b) => (a.path < b.path ? -1 : 1));
