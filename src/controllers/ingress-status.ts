/**
 * Ingresses of the mesh say in their status where it is reached: at the addresses of the gateway's service, or of the
 * nodes that gateways run on where the mesh names no service.
 */

import { isIP } from "node:net";
import { ingressKind } from "#config/kinds/ingress/kind.ts";
import type { Ingress } from "#config/kinds/ingress/schema.ts";
import type { IngressClass } from "#config/kinds/ingress-class/schema.ts";
import { isOfKind, resourceTypeOf } from "#config/kinds/kind.ts";
import { nodeKind } from "#config/kinds/node/kind.ts";
import { podKind } from "#config/kinds/pod/kind.ts";
import type { Service, ServiceStatus } from "#config/kinds/service/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { isOurs } from "#convert/routes/ingress.ts";
import { Backoff } from "#lib/async/backoff.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type KubernetesApi, MERGE_PATCH, type RawObject } from "#lib/kubernetes/api-client.ts";
import { type Follower, follow } from "#lib/kubernetes/follow.ts";
import { troubleText } from "#lib/kubernetes/missing-right.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log/log.ts";
import type { Source } from "#model/ports.ts";
import { WorkQueue } from "./work-queue.ts";

export interface IngressStatusOptions {
  readonly api: KubernetesApi;
  readonly source: Source;
  /** Where the gateway is that Ingresses go through. */
  readonly namespace: string;
  readonly log: Logger;
}

/** An address as the status of an Ingress has it. */
export type LoadBalancerAddress = { readonly ip: string } | { readonly hostname: string };

const INGRESSES = resourceTypeOf(ingressKind);
const DEFAULT_LABEL = "ingressgateway";
const RETRY = { initialMs: 200, maxMs: 10_000 };

/** Where the mesh's gateway for Ingresses is reached, sorted. */
export function gatewayAddresses(
  objects: readonly ConfigObject[],
  mesh: MeshConfig,
  namespace: string,
): readonly LoadBalancerAddress[] {
  const { ingressService = "" } = mesh;
  const found =
    ingressService === "" ? nodeAddresses(objects, mesh, namespace) : serviceAddresses(objects, mesh, namespace);
  return found.toSorted().map((address) => (isIP(address) === 0 ? { hostname: address } : { ip: address }));
}

function serviceAddresses(objects: readonly ConfigObject[], { ingressService }: MeshConfig, namespace: string) {
  const service = objects.find(
    ({ kind, metadata }) => kind === "Service" && metadata.namespace === namespace && metadata.name === ingressService,
  ) as ConfigObject<Service, ServiceStatus> | undefined;
  if (service === undefined) return [];
  const { type, externalName = "", externalIPs = [] } = service.spec;
  if (type === "ExternalName") return [externalName];
  const balanced = service.status?.loadBalancer?.ingress ?? [];
  return [...balanced.map(({ ip, hostname = "" }) => ip || hostname), ...externalIPs];
}

/** Those of the first node that a gateway runs on. */
function nodeAddresses(objects: readonly ConfigObject[], { ingressSelector }: MeshConfig, namespace: string) {
  const pods = objects.filter(isOfKind(podKind));
  const gateways = pods.filter(
    ({ metadata, status }) =>
      metadata.namespace === namespace &&
      metadata.labels.istio === (ingressSelector || DEFAULT_LABEL) &&
      status?.phase === "Running",
  );
  const nodes = objects.filter(isOfKind(nodeKind));
  const node = gateways
    .map(({ spec }) => nodes.find(({ metadata }) => metadata.name === spec.nodeName))
    .find((candidate) => candidate !== undefined);
  const external = (node?.status?.addresses ?? []).filter(({ type }) => type === "ExternalIP");
  return [...new Set(external.map(({ address = "" }) => address))].filter((address) => address !== "");
}

/** Writes until the signal aborts. Only one replica may do this at a time. */
export async function keepIngressStatus(options: IngressStatusOptions, signal: AbortSignal): Promise<void> {
  const { api, source, log } = options;
  const known = new Map<string, RawObject>();
  const queue = new WorkQueue({
    work: async (key) => putRight(known.get(key), options),
    failed: (ingress, problem) => {
      const reason = troubleText(problem, { ...INGRESSES, plural: "ingresses/status" }, ["patch"]);
      log.warn("the status of an Ingress cannot be written", { ingress, reason });
    },
  });
  const take = (object: RawObject) => {
    known.set(keyOf(object), object);
    queue.add(keyOf(object));
  };
  const follower: Follower = {
    replace: async (objects) => {
      known.clear();
      for (const object of objects) take(object);
    },
    put: take,
    remove: (object) => void known.delete(keyOf(object)),
    trouble: (problem) => {
      if (problem !== undefined) log.warn("ingresses cannot be read", { reason: troubleText(problem, INGRESSES) });
    },
  };
  const unsubscribe = source.subscribe(() => {
    for (const key of known.keys()) queue.add(key);
  });
  await follow({ api, type: INGRESSES, follower, backoff: new Backoff(RETRY), signal });
  unsubscribe();
  await queue.stop();
}

async function putRight(
  ingress: RawObject | undefined,
  { api, source, namespace }: IngressStatusOptions,
): Promise<void> {
  const { mesh } = source.current();
  const objects = source.objects();
  if (ingress === undefined || !isForUs(ingress, objects, mesh)) return;
  const addresses = gatewayAddresses(objects, mesh, namespace);
  if (isShown(ingress, addresses)) return;
  const { name, namespace: own } = ingress.metadata;
  const path = pathOf(INGRESSES, { name, namespace: own, subresource: "status" });
  const body = { status: { loadBalancer: { ingress: addresses } } };
  try {
    await api.call({ method: "PATCH", path, body, contentType: MERGE_PATCH });
  } catch (problem) {
    // It went meanwhile.
    if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
  }
}

function isForUs({ metadata }: RawObject, objects: readonly ConfigObject[], mesh: MeshConfig): boolean {
  const ingress = objects.find(
    ({ kind, metadata: { name, namespace } }) =>
      kind === "Ingress" && name === metadata.name && namespace === metadata.namespace,
  ) as ConfigObject<Ingress> | undefined;
  if (ingress === undefined) return false;
  const named = objects.find(
    (object) => object.kind === "IngressClass" && object.metadata.name === ingress.spec.ingressClassName,
  ) as ConfigObject<IngressClass> | undefined;
  return isOurs(ingress, named?.spec, mesh);
}

function isShown({ status }: RawObject, addresses: readonly LoadBalancerAddress[]): boolean {
  const { loadBalancer } = isRecord(status) ? status : {};
  const shown = isRecord(loadBalancer) && Array.isArray(loadBalancer.ingress) ? loadBalancer.ingress : [];
  const texts = shown.map((each) => (isRecord(each) ? `${each.ip ?? ""}/${each.hostname ?? ""}` : ""));
  const wanted = addresses.map((each) => ("ip" in each ? `${each.ip}/` : `/${each.hostname}`));
  return texts.length === wanted.length && texts.every((text, i) => text === wanted[i]);
}

function keyOf({ metadata }: RawObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}
