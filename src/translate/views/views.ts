/**
 * A view is what one part of a proxy's configuration depends on. Translators see views, never proxies: two proxies with
 * equal keys get the same bytes. Selectors are evaluated here, so a view holds the objects that select the proxy, no labels;
 * inbound and outbound are apart, because inbound differs per workload and outbound hardly does.
 *
 *   proxy + snapshot --> base --+--> outbound   listeners, clusters, routes towards services
 *                               +--> inbound    the listener and clusters of the workload's own ports
 *                               +--> gateway    listeners and routes of a router
 *                               +--> endpoints  of one cluster at a time
 *                               +--> names      the table of the DNS proxy
 */
import { hash } from "node:crypto";
import type { DestinationRule } from "#config/kinds/destination-rule/schema.ts";
import type { Gateway, GatewayServer } from "#config/kinds/gateway/schema.ts";
import type { RequestAuthentication } from "#config/kinds/request-authentication/schema.ts";
import type { EnforcedPolicy } from "#config/kinds/unreadable-policy.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { hasLabels, TLS_MODE } from "#model/labels/labels.ts";
import { textOf } from "#model/proxy/node-metadata.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { listenerName } from "../names/names.ts";
import { selectPatches } from "../patches/select.ts";
import { authorizationPoliciesOf } from "../policies/authorization-policies.ts";
import { effectiveMode, policiesOf, type WorkloadMtls } from "../policies/peer-authentication.ts";
import { requestAuthenticationsOf } from "../policies/request-authentications.ts";
import { changedKeys } from "../recipes/changed-keys.ts";
import { derived, kept } from "../recipes/indexes.ts";
import { hasLocalNames } from "../scope/cluster-local.ts";
import { selectingRules } from "../scope/destination-rules.ts";
import { routerServers } from "../scope/gateways.ts";
import { nearLabels, nodeName, wishesOfServices } from "../scope/near.ts";
import { type SidecarObject, sidecarFor } from "../scope/sidecars.ts";
import { sourceConditions } from "../scope/virtual-services.ts";
import { placeOf, type ServiceTarget, type WorkloadPlace } from "../targets/service-targets.ts";
import { type Traits, traitsOf } from "../traits/traits.ts";

/** What all views but that of endpoints hold. */
export interface BaseView {
  /** Equal keys, equal configuration, for one snapshot. */
  readonly key: string;
  readonly role: MeshProxy["type"];
  readonly namespace: string;
  /** `default.svc.cluster.local`: short host names are completed by it. */
  readonly dnsDomain: string;
  readonly traits: Traits;
  /** Key of the Sidecar that the proxy is under; empty for none, as for all routers. */
  readonly sidecar: string;
  /** Ids of the patches of EnvoyFilters for this part, in order. */
  readonly patches: readonly string[];
  /** The proxy proved no identity. */
  readonly onlyPublic?: true;
}

/** What decides configuration towards services. */
export interface OutboundView extends BaseView {
  /** Keys of the destination rules whose workload selector fits the proxy. */
  readonly selectedRules: readonly string[];
  /** Ids of the conditions on callers that the proxy's labels meet. */
  readonly sourceConditions: readonly string[];
  /** Where the proxy is: it orders the endpoints of DNS clusters. */
  readonly locality: string;
  /** That of the proxy, where it decides what hosts are looked up. */
  readonly clusterId?: string;
  /** Networks the proxy wants to know of, separated by commas; not set for all. */
  readonly networkView?: string;
  /** Whether some Gateway of the router leads TLS to clusters by the server name alone. */
  readonly passesByServerName: boolean;
  /** Gateways of the router, `namespace/name`, where it gets only the clusters that these lead to. */
  readonly clustersOf?: readonly string[];
}

/** What decides configuration of the workload's own ports. */
export interface InboundView extends BaseView {
  readonly targets: readonly ServiceTarget[];
  readonly mtls: WorkloadMtls;
  readonly authorization: readonly ConfigObject<EnforcedPolicy>[];
  readonly authentication: readonly ConfigObject<RequestAuthentication>[];
  /** The proxy's own addresses, where its Sidecar opens ports or names endpoints on them; none otherwise. */
  readonly addresses: readonly string[];
}

/** What decides configuration of a router's servers. */
export interface GatewayView extends BaseView {
  /** The Gateways that select the proxy, in order of precedence. */
  readonly gateways: readonly ConfigObject<Gateway>[];
  /** Its own services: they map ports that clients call to ports it listens on. */
  readonly targets: readonly ServiceTarget[];
  readonly selectedRules: readonly string[];
  readonly sourceConditions: readonly string[];
  readonly authorization: readonly ConfigObject<EnforcedPolicy>[];
  readonly authentication: readonly ConfigObject<RequestAuthentication>[];
}

/** What decides the endpoints of a cluster. */
export interface EndpointsView {
  readonly key: string;
  readonly role: MeshProxy["type"];
  readonly namespace: string;
  readonly sidecar: string;
  readonly selectedRules: readonly string[];
  readonly locality: string;
  /** `name=value` of the proxy's labels that some rule uses to tell what is near. */
  readonly proxyLabels: readonly string[];
  readonly clusterId: string;
  /** The machine the proxy runs on; empty where no service asks for it. */
  readonly nodeName: string;
  /** Where the proxy is; empty in a mesh of one network. */
  readonly network: string;
  /** Networks the proxy wants to know of, separated by commas; empty for all. */
  readonly networkView: string;
  readonly onlyPublic?: true;
}

/** What decides the table of names. */
export interface NamesView {
  readonly key: string;
  readonly role: MeshProxy["type"];
  readonly namespace: string;
  readonly sidecar: string;
  readonly traits: Pick<Traits, "autoAddresses" | "listener">;
  readonly network: string;
  readonly clusterId: string;
  readonly onlyPublic?: true;
}

/** The views of one proxy. Sidecars have an inbound view, routers one of gateways. */
export interface ProxyViews {
  readonly outbound: OutboundView;
  readonly inbound: InboundView | undefined;
  readonly gateway: GatewayView | undefined;
  readonly endpoints: EndpointsView;
  readonly names: NamesView;
  /**
   * Outbound listeners that lead to the proxy itself, as those of headless services do. They are not for this proxy, but
   * leaving them out of its view would give each replica a view of its own.
   */
  readonly omittedListeners: ReadonlySet<string>;
  /** Label `security.istio.io/tlsMode: istio` of the workload: where both are allowed, callers come with mutual TLS. */
  readonly isMutualTls: boolean;
}

/** The views of a proxy in a snapshot. Most changes are of something that decides no view: then they are those of before. */
export function viewsOf(snapshot: Snapshot, connected: MeshProxy): ProxyViews {
  const last = lastViews.get(connected);
  if (last !== undefined && isUntouched(last.snapshot, snapshot, connected)) {
    last.snapshot = snapshot;
    return last.views;
  }
  const place = placeOf(snapshot, connected);
  const from = [decidingViews("", snapshot), place];
  const views = kept(connected, "views", from, () => viewsAt(snapshot, connected, place));
  lastViews.set(connected, { snapshot, views });
  return views;
}

/** Views, and the newest snapshot that they are known to be of. */
interface LastViews {
  snapshot: Snapshot;
  readonly views: ProxyViews;
}

const lastViews = new WeakMap<MeshProxy, LastViews>();

/** Whether nothing changed that could change the views of a proxy: nothing but endpoints, and none at its addresses. */
function isUntouched(before: Snapshot, after: Snapshot, { addresses }: MeshProxy): boolean {
  const touched = touchedAddresses("", before, after);
  return touched !== undefined && !addresses.some((address) => touched.has(address));
}

/** Addresses of endpoints that came, changed or went; undefined where something else changed that counts for views. */
const touchedAddresses = derived((_: string, before: Snapshot, after: Snapshot): ReadonlySet<string> | undefined => {
  const isOther = before.services !== after.services || before.workloads !== after.workloads;
  if (isOther || decidingViews("", before) !== decidingViews("", after)) return undefined;
  const changed = changedKeys("", before.endpoints, after.endpoints);
  const sets = [...changed].flatMap((key) => [before.endpoints.get(key), after.endpoints.get(key)]);
  return new Set(sets.flatMap((set) => set?.endpoints.map(({ address }) => address) ?? []));
});

/**
 * All of a snapshot but what counts only by the place of a proxy, by conditions on callers, by what services want to know of
 * callers, or for no view; and these conditions and wishes. The same list as long as nothing in it changes.
 */
const decidingViews = derived((_: string, snapshot: Snapshot): readonly unknown[] => {
  const { version, services, endpoints, workloads, virtualServices, secrets, configMaps, keySets, ...rest } = snapshot;
  const conditions = sourceConditions(snapshot).map(({ id }) => id);
  const deciding = [...Object.values(rest), ...wishesOfServices(snapshot), ...conditions];
  // Both kinds of snapshots take turns.
  const key = `deciding views${snapshot.onlyPublic === true ? ", public" : ""}`;
  return kept(snapshot.mesh, key, deciding, () => deciding);
});

function viewsAt(snapshot: Snapshot, connected: MeshProxy, place: WorkloadPlace): ProxyViews {
  const { targets } = place;
  const locality = place.locality || (connected.locality ?? "");
  const proxy = { ...connected, labels: labelsOf(connected, place) };
  const traits = traitsOf(snapshot.mesh, proxy, snapshot.features);
  const selectedRules = selectingRules(snapshot)
    .filter((rule) => isSelected(rule, proxy))
    .map(objectKey);
  const conditions = sourceConditions(snapshot)
    .filter(({ labels }) => hasLabels(proxy.labels, labels))
    .map(({ id }) => id);
  const { type: role, namespace, dnsDomain } = proxy;
  const sidecarObject = role === "sidecar" ? sidecarFor(snapshot, proxy) : undefined;
  const sidecar = sidecarObject === undefined ? "" : objectKey(sidecarObject);
  const audience = snapshot.onlyPublic === true ? { onlyPublic: snapshot.onlyPublic } : {};
  const base = { role, namespace, dnsDomain, traits, sidecar, ...audience };
  const patches = selectPatches(snapshot, proxy);
  const outbound = { ...base, patches: patches.outbound, selectedRules, sourceConditions: conditions };
  const inbound = { ...base, patches: patches.inbound };
  const network = textOf(proxy.metadata.NETWORK);
  const networkView = textOf(proxy.metadata.REQUESTED_NETWORK_VIEW);
  const clusterId = textOf(proxy.metadata.CLUSTER_ID);
  const gateways =
    role === "router" ? snapshot.gateways.filter((gateway) => selectsGateway(gateway, proxy, snapshot)) : [];
  const gateway =
    role === "router"
      ? gatewayView(snapshot, { ...outbound, patches: patches.gateway }, { proxy, targets, gateways })
      : undefined;
  return {
    outbound: keyed("outbound", {
      ...outbound,
      locality,
      ...(hasLocalNames(snapshot) && { clusterId }),
      ...(networkView !== "" && { networkView }),
      passesByServerName: gateway !== undefined && passesByServerName(gateway),
      ...(role === "router" && snapshot.features.referencedClusters && { clustersOf: gateways.map(gatewayName) }),
    }),
    inbound:
      role === "sidecar" ? inboundView(snapshot, inbound, { proxy, targets, sidecar: sidecarObject }) : undefined,
    gateway,
    endpoints: keyed("endpoints", {
      role,
      namespace,
      sidecar,
      selectedRules,
      locality,
      proxyLabels: nearLabels(snapshot, proxy, locality),
      clusterId,
      nodeName: nodeName(snapshot, proxy),
      network: snapshot.networkGateways.length === 0 ? "" : network,
      networkView,
      ...audience,
    }),
    names: namesView({ role, namespace, sidecar, traits, network, clusterId, ...audience }),
    omittedListeners: ownListeners(proxy, targets),
    isMutualTls: (place.tlsMode ?? proxy.labels[TLS_MODE]) === "istio",
  };
}

/** What a registry says of a workload goes before what its proxy says of itself, but for what was set for the proxy alone. */
function labelsOf({ labels, metadata }: MeshProxy, place: WorkloadPlace): MeshProxy["labels"] {
  if (Object.keys(place.labels).length === 0) return labels;
  const own = metadata.STATIC_LABELS;
  return { ...(isLabels(own) && own), ...place.labels };
}

function isLabels(value: unknown): value is Readonly<Record<string, string>> {
  return (
    typeof value === "object" && value !== null && Object.values(value).every((label) => typeof label === "string")
  );
}

interface Owner {
  readonly proxy: MeshProxy;
  readonly targets: readonly ServiceTarget[];
  readonly sidecar?: SidecarObject | undefined;
  readonly gateways?: readonly ConfigObject<Gateway>[];
}
type Unkeyed<View> = Omit<View, "key">;

function keyed<View extends object>(kind: string, view: View): View & { readonly key: string } {
  return { ...view, key: keyOf(kind, view) };
}

/** Short, because every proxy has its own copy, and they are compared and looked up with each push. */
function keyOf(kind: string, content: unknown): string {
  return `${kind}:${hash("sha256", JSON.stringify(content), "base64url")}`;
}

function inboundView(snapshot: Snapshot, base: Unkeyed<BaseView>, { proxy, targets, sidecar }: Owner): InboundView {
  const { rootNamespace } = snapshot.mesh;
  const namespace = snapshot.onlyPublic === true ? NO_NAMESPACE : proxy.namespace;
  const mtls = effectiveMode(policiesOf(snapshot, namespace), { ...proxy, namespace }, rootNamespace);
  const authorization = authorizationPoliciesOf(snapshot, proxy);
  const authentication = requestAuthenticationsOf(snapshot, proxy);
  const policies = [authorization, authentication].map((list) => list.map(policyKey));
  const addresses = namesOwnAddress(sidecar) ? proxy.addresses : [];
  const key = keyOf("inbound", [base, mtls, targets.map(targetKey), policies, addresses]);
  return { ...base, key, mtls, targets, authorization, authentication, addresses };
}

/** Only what holds for the whole mesh holds for it. */
const NO_NAMESPACE = "";

/** Listeners without an address are on that of the proxy, and `0.0.0.0` as an endpoint means it. */
function namesOwnAddress(sidecar: SidecarObject | undefined): boolean {
  const ingress = sidecar?.spec.ingress ?? [];
  return ingress.some(({ bind, defaultEndpoint = "" }) => !bind || /^(0\.0\.0\.0|\[::\]):/.test(defaultEndpoint));
}

function gatewayView(
  snapshot: Snapshot,
  base: Omit<GatewayView, "key" | "gateways" | "targets" | "authorization" | "authentication">,
  { proxy, targets, gateways = [] }: Owner,
): GatewayView {
  const authorization = authorizationPoliciesOf(snapshot, proxy);
  const authentication = requestAuthenticationsOf(snapshot, proxy);
  const objects = [gateways, authorization, authentication].map((list) => list.map(policyKey));
  const key = keyOf("gateway", [base, objects, targets.map(targetKey)]);
  return { ...base, key, gateways, targets, authorization, authentication };
}

/** An object that cannot be read has the key of one that can. */
function policyKey(policy: ConfigObject<Partial<Pick<EnforcedPolicy, "unreadable">>>): string {
  return policy.spec.unreadable === undefined ? objectKey(policy) : `${objectKey(policy)} unreadable`;
}

function selectsGateway({ spec, metadata }: ConfigObject<Gateway>, proxy: MeshProxy, { features }: Snapshot): boolean {
  if (features.gatewaysOfNamespace && metadata.namespace !== proxy.namespace) return false;
  return hasLabels(proxy.labels, spec.selector ?? {});
}

function gatewayName({ metadata: { namespace, name } }: ConfigObject<Gateway>): string {
  return `${namespace}/${name}`;
}

/** Whether one of the servers that won their port passes connections on by server name. */
function passesByServerName(view: GatewayView): boolean {
  const isAuto = ({ tls }: GatewayServer) => tls?.mode === "AUTO_PASSTHROUGH";
  // Most routers have none, and need not be looked at server by server.
  if (!view.gateways.some(({ spec }) => spec.servers?.some(isAuto))) return false;
  return routerServers(view).ports.some(({ servers }) => servers.some(({ server }) => isAuto(server)));
}

function namesView({ traits, ...rest }: Unkeyed<Omit<NamesView, "traits">> & { readonly traits: Traits }): NamesView {
  const { autoAddresses, listener } = traits;
  const key = keyOf("names", [rest, autoAddresses, listener.ipMode]);
  return { ...rest, key, traits: { autoAddresses, listener } };
}

function targetKey({ service, port, targetPort }: ServiceTarget): string {
  return `${service.namespace}/${service.hostname}/${port.port}/${port.name}/${port.protocol}/${targetPort}`;
}

function isSelected({ spec, metadata }: ConfigObject<DestinationRule>, proxy: MeshProxy): boolean {
  return metadata.namespace === proxy.namespace && hasLabels(proxy.labels, spec.workloadSelector?.matchLabels);
}

function ownListeners(proxy: MeshProxy, targets: readonly ServiceTarget[]): ReadonlySet<string> {
  const [address = ""] = proxy.addresses;
  const headless = targets.filter(({ service }) => service.resolution === "passthrough");
  return new Set(headless.map(({ port }) => listenerName(address, port.port)));
}
