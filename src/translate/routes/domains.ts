/** The names by which a service may be called in a `Host` header. */
import { isIP } from "node:net";
import type { Service } from "#model/service/service.ts";
import { hostInUrl } from "../names/names.ts";
import { kept } from "../recipes/indexes.ts";
import { type AddressTraits, isOneDestination, serviceAddresses } from "../scope/addresses.ts";
import type { ListenerSwitches } from "../traits/switches.ts";

/** Names of a service; the short ones give way where another service has that name in full. */
export interface ServiceDomains {
  readonly all: readonly string[];
  /** The same in lower case: hosts are compared so. */
  readonly lower: readonly string[];
  readonly short: ReadonlySet<string>;
}

/** What the names depend on of a proxy. */
export type DomainTraits = AddressTraits &
  ListenerSwitches & {
    /** Requests come for any port, and to allocated addresses of both families. */
    readonly anyPort?: boolean;
  };

/** All names of a service for a proxy with the given DNS domain, such as `default.svc.cluster.local`. */
export function serviceDomains(service: Service, dnsDomain: string, traits: DomainTraits): ServiceDomains {
  const { ipMode, dualStack, autoAddresses, withoutAbsoluteNames, anyPort } = traits;
  const from = [dnsDomain, ipMode, dualStack, autoAddresses, withoutAbsoluteNames, anyPort];
  return kept(service, "domains", from, () => domainsOf(service, dnsDomain, traits));
}

/** Each name also with the port behind it, where requests may come for any port. */
export function withPort({ all, short }: ServiceDomains, port: number): ServiceDomains {
  const both = (names: Iterable<string>) => [...names].flatMap((name) => [name, `${name}:${port}`]);
  const names = both(all);
  return { all: names, lower: names.map((name) => name.toLowerCase()), short: new Set(both(short)) };
}

/** The one name of a host that no service has. */
export function hostDomains(host: string): ServiceDomains {
  return { all: [hostInUrl(host)], lower: [hostInUrl(host).toLowerCase()], short: new Set() };
}

function domainsOf(service: Service, dnsDomain: string, traits: DomainTraits): ServiceDomains {
  const { hostname, registry, resolution, aliases = [] } = service;
  const names = [hostname, ...aliases.map((alias) => alias.hostname)];
  const short = names.flatMap((name) => otherNames(name, dnsDomain, traits));
  const named = names.flatMap((name) => [hostInUrl(name), ...otherNames(name, dnsDomain, traits)]);
  // Pods of a headless service are called by names in front of it.
  const ofPods = resolution === "passthrough" && registry === "Kubernetes" ? named.map((name) => `*.${name}`) : [];
  const addresses = serviceAddresses(service, traits);
  const called = registry === "Kubernetes" ? addresses : calledAddresses(service, addresses, traits);
  const all = [...new Set([...named, ...ofPods, ...called.map(hostInUrl)])].filter((name) => name !== "");
  return { all, lower: all.map((name) => name.toLowerCase()), short: new Set(short) };
}

/** Each address of a ServiceEntry counts as a service of its own, of which the last has the name; of allocated ones the first. */
function calledAddresses(service: Service, addresses: readonly string[], { anyPort }: DomainTraits): readonly string[] {
  if (!isOneDestination(service)) return addresses.slice(-1);
  return anyPort ? addresses : addresses.slice(0, 1);
}

/** `httpbin.default.svc.cluster.local.`, `httpbin`, `httpbin.default.svc`, `httpbin.default`: as far as they are unique. */
export function otherNames(hostname: string, dnsDomain: string, traits: ListenerSwitches): string[] {
  const absolute = isIP(hostname) === 0 && !traits.withoutAbsoluteNames ? [`${hostname}.`] : [];
  if (dnsDomain.includes(".svc.")) return [...absolute, ...kubernetesNames(hostname, dnsDomain)];
  return [...absolute, ...namesUnder(hostname, dnsDomain)];
}

function kubernetesNames(hostname: string, dnsDomain: string): string[] {
  const suffix = dnsDomain.slice(dnsDomain.indexOf(".svc."));
  const at = hostname.indexOf(".svc.");
  if (!hostname.endsWith(suffix) || at <= 0) return [];
  const dot = hostname.indexOf(".");
  if (dot + 1 > at) return [];
  const long = hostname.slice(0, at);
  const isSameNamespace = hostname.slice(dot + 1, at) === dnsDomain.slice(0, dnsDomain.indexOf(".svc."));
  return isSameNamespace ? [hostname.slice(0, dot), `${long}.svc`, long] : [long, `${long}.svc`];
}

/** Outside Kubernetes a name is shortened by what it shares with the proxy's domain. */
function namesUnder(hostname: string, dnsDomain: string): string[] {
  const host = hostname.split(".").reverse();
  const domain = dnsDomain.split(".").reverse();
  let shared = 0;
  while (shared < host.length && shared < domain.length && host[shared] === domain[shared]) shared++;
  if (shared === 0) return [];
  const unique = host.slice(shared).reverse();
  const short = unique.join(".");
  const firstShared = host[shared - 1];
  return unique.length === 2 ? [short, `${short}.${firstShared}`] : [short];
}
