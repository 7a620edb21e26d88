/**
 * The virtual hosts of a set of routes of a router, as they follow the virtual services. Thousands of virtual services may be
 * bound to one port, of which mostly one changes:
 *
 *   virtual services --> claims on hosts --> hosts with the very same routes --> recipes, in order of their names
 *
 * A changed virtual service touches the hosts that it claims or claimed, these the groups that they are or were in, and only
 * of these groups the recipes are made again. Starting from nothing is the same with all virtual services changed.
 */
import type { Steps } from "#lib/async/steps.ts";
import { changedSorted, listChanges } from "#lib/collections/list-changes.ts";
import { compareText } from "#lib/text/compare-text.ts";
import { bySpecificity, hostsForNamespace, intersectHosts } from "../names/hosts.ts";
import type { Recipe } from "../recipes/recipe.ts";
import type { RouterServer } from "../scope/gateways.ts";
import type { BoundVirtualService } from "../scope/virtual-services.ts";
import type { ApplicableRoute } from "./applicable.ts";

/** Hosts that have the very same routes, and become one virtual host. */
export interface HostGroup {
  /** The most specific of them. */
  readonly host: string;
  readonly domains: readonly string[];
  /** Of the server that claims it first. */
  readonly server: RouterServer;
  /** Of all virtual services that claim it. */
  readonly routes: readonly ApplicableRoute[];
  readonly requiresTls: boolean;
}

/** How hosts are made. All that it depends on is the same as long as the hosts are followed. */
export interface HostMaker {
  /** Whether routes of a virtual service may lead elsewhere than the last time. */
  readonly mayLeadElsewhere: (virtualService: BoundVirtualService) => boolean;
  readonly routesOn: (server: RouterServer, virtualService: BoundVirtualService) => readonly ApplicableRoute[];
  readonly recipeOf: (group: HostGroup) => Recipe;
}

/** The virtual services of each Gateway, in order of precedence. */
export type GatewayLists = ReadonlyMap<string, readonly BoundVirtualService[]>;

type Routes = readonly ApplicableRoute[];

/** One server, and mostly a virtual service, that says something about a host. */
interface Claim {
  /** Place of the server. */
  readonly server: number;
  /** Undefined where the server itself redirects requests for the host. */
  readonly virtualService: BoundVirtualService | undefined;
  readonly routes: Routes | undefined;
}

interface Host {
  readonly host: string;
  /** In the order of servers, then of virtual services. */
  claims: Claim[];
  routes: readonly Routes[];
  requiresTls: boolean;
}

/** Hosts whose first routes are the same: only among these some can have the very same. */
interface Kin {
  readonly routes: Routes | undefined;
  readonly hosts: Set<Host>;
  recipes: readonly Recipe[];
}

/** The virtual hosts of the servers that share a set of routes. */
export class GatewayHosts {
  readonly #servers: readonly RouterServer[];
  readonly #collapses: boolean;
  readonly #hosts = new Map<string, Host>();
  readonly #claimed = new Map<BoundVirtualService, Host[]>();
  readonly #kin = new Map<Routes | undefined, Kin>();
  /** Hosts whose recipes have to be made. */
  readonly #touched = new Set<Host>();
  #lists: GatewayLists = new Map();
  #recipes: readonly Recipe[] = [];

  /** With `collapses`, hosts with the very same routes are one virtual host: routes are large, and a virtual service may have many hosts. */
  constructor(servers: readonly RouterServer[], collapses: boolean) {
    this.#servers = servers;
    this.#collapses = collapses;
    for (const [server, { hosts }] of servers.entries()) {
      if (!this.#redirects(server)) continue;
      const claim = { server, virtualService: undefined, routes: undefined };
      for (const host of hosts) this.#claim(host.split("/").at(-1) ?? host, claim);
    }
  }

  /** In order of their names; the same list as before where nothing changed. */
  get recipes(): readonly Recipe[] {
    return this.#recipes;
  }

  /** From now on these are the virtual services. */
  *follow(lists: GatewayLists, maker: HostMaker): Steps<void> {
    const { removed, added } = changesOf(this.#lists, lists);
    this.#lists = lists;
    for (const virtualService of removed) this.#unclaim(virtualService);
    for (const virtualService of [...this.#claimed.keys()].filter(maker.mayLeadElsewhere)) {
      if (!this.#leadsAsBefore(virtualService, maker)) {
        this.#unclaim(virtualService);
        added.add(virtualService);
      }
      yield;
    }
    for (const virtualService of added) {
      this.#claimAll(virtualService, maker);
      yield;
    }
    yield* this.#settle(maker);
  }

  #unclaim(virtualService: BoundVirtualService): void {
    for (const host of this.#claimed.get(virtualService) ?? []) {
      host.claims = host.claims.filter((claim) => claim.virtualService !== virtualService);
      this.#touched.add(host);
    }
    this.#claimed.delete(virtualService);
  }

  /** Whether its routes are what they were when it claimed its hosts. */
  #leadsAsBefore(virtualService: BoundVirtualService, { routesOn }: HostMaker): boolean {
    /** The first server of each Gateway decides. */
    const first = new Map<string, Claim>();
    for (const { claims } of this.#claimed.get(virtualService) ?? []) {
      for (const claim of claims) {
        if (claim.virtualService !== virtualService) continue;
        const gateway = this.#servers[claim.server]?.gateway ?? "";
        const known = first.get(gateway);
        if (known === undefined || claim.server < known.server) first.set(gateway, claim);
      }
    }
    return first.values().every(({ server, routes = [] }) => {
      const owner = this.#servers[server];
      return owner !== undefined && leadAlike(routes, routesOn(owner, virtualService));
    });
  }

  #claimAll(virtualService: BoundVirtualService, { routesOn }: HostMaker): void {
    const { namespace } = virtualService.object.metadata;
    /** Servers of one Gateway share what the first of them has. */
    const byGateway = new Map<string, Routes>();
    const claimed: Host[] = [];
    for (const [index, server] of this.#servers.entries()) {
      if (!virtualService.gateways.includes(server.gateway)) continue;
      const own = intersectHosts(hostsForNamespace(server.hosts, namespace), virtualService.hosts);
      if (own.length === 0) continue;
      const routes = byGateway.get(server.gateway) ?? routesOn(server, virtualService);
      byGateway.set(server.gateway, routes);
      if (routes.length === 0) continue;
      for (const host of own) claimed.push(this.#claim(host, { server: index, virtualService, routes }));
    }
    if (claimed.length > 0) this.#claimed.set(virtualService, claimed);
  }

  #claim(name: string, claim: Claim): Host {
    const key = name.toLowerCase();
    const host = this.#hosts.get(key) ?? { host: key, claims: [], routes: [], requiresTls: false };
    this.#hosts.set(key, host);
    host.claims.push(claim);
    this.#touched.add(host);
    return host;
  }

  /** Makes the recipes of all that have to do with the touched hosts again. */
  *#settle({ recipeOf }: HostMaker): Steps<void> {
    const concerned = new Set<Kin>();
    const rankOf = this.#ranks();
    for (const host of this.#touched) {
      const before = this.#kin.get(host.routes[0]);
      if (before?.hosts.delete(host)) concerned.add(before);
      if (host.claims.length > 1) host.claims.sort((a, b) => a.server - b.server || rankOf(a) - rankOf(b));
      host.routes = host.claims.flatMap(({ routes }) => (routes === undefined ? [] : [routes]));
      host.requiresTls = host.claims.some(({ server }) => this.#redirects(server));
      if (host.claims.length === 0) this.#hosts.delete(host.host);
      else concerned.add(this.#join(host));
    }
    this.#touched.clear();
    const [removed, added]: [Recipe[], Recipe[]] = [[], []];
    for (const kin of concerned) {
      removed.push(...kin.recipes);
      kin.recipes = this.#groups(kin.hosts).map(recipeOf);
      added.push(...kin.recipes);
      if (kin.hosts.size === 0) this.#kin.delete(kin.routes);
      yield;
    }
    this.#recipes = changedSorted(this.#recipes, { removed, added }, byName);
  }

  #join(host: Host): Kin {
    const [routes] = host.routes;
    const kin = this.#kin.get(routes) ?? { routes, hosts: new Set(), recipes: [] };
    this.#kin.set(routes, kin);
    kin.hosts.add(host);
    return kin;
  }

  #redirects(server: number): boolean {
    return this.#servers[server]?.server.tls?.httpsRedirect === true;
  }

  /** The place of a claim among those of its server. Hardly a host has two of them: nobody is counted before it is asked. */
  #ranks(): (claim: Claim) => number {
    const ranks = new Map<string, ReadonlyMap<unknown, number>>();
    return ({ server, virtualService }) => {
      const gateway = this.#servers[server]?.gateway ?? "";
      const own = ranks.get(gateway) ?? new Map((this.#lists.get(gateway) ?? []).map((one, i) => [one, i]));
      ranks.set(gateway, own);
      return own.get(virtualService) ?? own.size;
    };
  }

  #groups(hosts: ReadonlySet<Host>): readonly HostGroup[] {
    const groups: { readonly first: Host; readonly domains: string[] }[] = [];
    for (const host of [...hosts].sort((a, b) => bySpecificity(a.host, b.host))) {
      const alike = this.#collapses ? groups.findLast(({ first }) => hasSameRoutes(first, host)) : undefined;
      if (alike?.first.requiresTls === host.requiresTls) alike.domains.push(host.host);
      else groups.push({ first: host, domains: [host.host] });
    }
    return groups.flatMap(({ first, domains }) => {
      const server = this.#servers[first.claims[0]?.server ?? 0];
      const { host, routes, requiresTls } = first;
      return server === undefined ? [] : { host, domains, server, routes: routes.flat(), requiresTls };
    });
  }
}

function changesOf(before: GatewayLists, after: GatewayLists): Record<"removed" | "added", Set<BoundVirtualService>> {
  const [removed, added] = [new Set<BoundVirtualService>(), new Set<BoundVirtualService>()];
  for (const [gateway, list] of after) {
    const changes = listChanges(before.get(gateway) ?? [], list);
    for (const one of changes.removed) removed.add(one);
    for (const one of changes.added) added.add(one);
  }
  return { removed, added };
}

function hasSameRoutes(a: Host, b: Host): boolean {
  return a.routes.length === b.routes.length && a.routes.every((routes, i) => routes === b.routes[i]);
}

function leadAlike(a: Routes, b: Routes): boolean {
  return a.length === b.length && a.every((route, i) => isAlike(route, b[i]));
}

function isAlike({ clusters, hashes, ...own }: ApplicableRoute, other: ApplicableRoute | undefined): boolean {
  if (other === undefined) return false;
  const { route, match, origin, session } = other;
  return (
    own.route === route &&
    own.match === match &&
    own.origin === origin &&
    own.session === session &&
    clusters.every((cluster, i) => cluster === other.clusters[i]) &&
    hashes.every((hash, i) => hash === other.hashes[i])
  );
}

function byName(a: Recipe, b: Recipe): number {
  return compareText(a.name, b.name);
}
