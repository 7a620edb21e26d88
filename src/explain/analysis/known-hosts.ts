/** The hosts that objects may lead to: those of ServiceEntries and Services, each for the namespaces that see it. */

import type { Service } from "#config/kinds/service/schema.ts";
import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { completeHost, isWildcard } from "#config/terms/host.ts";
import { serviceExportTo } from "#config/terms/visibility.ts";

/** What is known of a host. */
export interface KnownHost {
  readonly ports: readonly number[];
  /** Of a ServiceEntry that has no endpoints of its own. */
  readonly selector: Readonly<Record<string, string>>;
}

/** Finds hosts. */
export interface KnownHosts {
  /** The host that an object means which is in a namespace and visible to `exportTo`. */
  find(host: string, namespace: string, exportTo?: readonly string[]): KnownHost | undefined;
}

const EVERYBODY = "*";
/** Analysers take this domain for granted. */
const DOMAIN = "cluster.local";

/** A table of all hosts. */
export function knownHosts(
  entries: readonly ConfigObject<ServiceEntry>[],
  services: readonly ConfigObject<Service>[],
): KnownHosts {
  const hosts = new Map<string, KnownHost>();
  for (const { metadata, spec } of entries) {
    const known = { ports: portsOf(spec.ports), selector: spec.workloadSelector?.labels ?? {} };
    const scopes = scopesOf(spec.exportTo, metadata.namespace);
    for (const host of spec.hosts)
      for (const scope of scopes) hosts.set(placeOf(scope, metadata.namespace, host), known);
  }
  for (const { metadata, spec } of services) {
    const ports = (spec.ports ?? []).map(({ port }) => port);
    for (const scope of scopesOf(serviceExportTo(metadata), metadata.namespace))
      hosts.set(placeOf(scope, metadata.namespace, metadata.name), { ports, selector: {} });
  }
  const wild = [...hosts].filter(([place]) => place.includes("/*"));
  return {
    find: (host, namespace, exportTo = []) => {
      const scopes = exportTo.length === 0 ? [namespace] : exportTo.map((each) => (each === "." ? namespace : each));
      const places = [EVERYBODY, ...scopes].map((scope) => placeOf(scope, namespace, host));
      const exact = places.map((place) => hosts.get(place)).find((known) => known !== undefined);
      return exact ?? wild.find(([place]) => isCovered(place, host, namespace))?.[1];
    },
  };
}

function scopesOf(exportTo: readonly string[] | undefined, namespace: string): readonly string[] {
  if (exportTo === undefined || exportTo.length === 0 || exportTo.includes(EVERYBODY)) return [EVERYBODY];
  return exportTo.map((each) => (each === "." ? namespace : each));
}

function portsOf(ports: ServiceEntry["ports"] = []): readonly number[] {
  return ports.map(({ number }) => number);
}

function placeOf(scope: string, namespace: string, host: string): string {
  return `${scope}/${isWildcard(host) ? host : completeHost(host, namespace, DOMAIN)}`;
}

function isCovered(place: string, host: string, namespace: string): boolean {
  const [scope, wildcard = ""] = place.split("/");
  return (scope === EVERYBODY || scope === namespace) && host.replace(/^\*/, "").endsWith(wildcard.slice(1));
}
