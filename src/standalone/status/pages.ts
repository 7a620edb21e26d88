/** What can be opened behind a published port: read from the routes, so that a person has something to click on. */

import type { Gateway } from "#config/kinds/gateway/schema.ts";
import { gatewaysOf } from "#config/kinds/virtual-service/gateway-name.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { Member } from "../mesh/mesh.ts";

export interface Page {
  /** `*` when any will do. */
  readonly host: string;
  readonly path: string;
}

/** More would not be read. */
const MAX_PAGES = 5;

/** One page for each host that HTTP routes serve on a port of a gateway. */
export function pagesOf(snapshot: Snapshot, { labels, proxy }: Pick<Member, "labels" | "proxy">, port: number): Page[] {
  if (proxy !== "router") return [];
  const gateways = new Set(
    snapshot.gateways.filter(({ spec }) => selects(spec, labels) && servesHttp(spec, port)).map(keyOf),
  );
  const pages = snapshot.virtualServices
    .filter((object) => gatewaysOf(object.spec, object.metadata.namespace).some((name) => gateways.has(name)))
    .flatMap(({ spec }) => (spec.hosts ?? []).map((host): Page => ({ host, path: firstPath(spec) })));
  return [...new Map(pages.map((page) => [page.host, page])).values()].slice(0, MAX_PAGES);
}

function selects({ selector }: Gateway, labels: Member["labels"]): boolean {
  return hasLabels(labels, selector);
}

function servesHttp({ servers = [] }: Gateway, port: number): boolean {
  return servers.some((server) => server.port.number === port && /^HTTP2?$|^GRPC/i.test(server.port.protocol));
}

function keyOf({ metadata }: ConfigObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

function firstPath({ http = [] }: VirtualService): string {
  const uris = http.flatMap(({ match = [] }) => match.map(({ uri }) => uri?.exact ?? uri?.prefix));
  return uris.find((path) => path !== undefined) ?? "/";
}
