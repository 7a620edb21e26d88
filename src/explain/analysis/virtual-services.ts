/** VirtualServices that lead to what is not there, or claim what others do. */

import { destinationRuleKind } from "#config/kinds/destination-rule/kind.ts";
import { gatewayKind } from "#config/kinds/gateway/kind.ts";
import type { Gateway } from "#config/kinds/gateway/schema.ts";
import { requestAuthenticationKind } from "#config/kinds/request-authentication/kind.ts";
import { destinationsOf } from "#config/kinds/virtual-service/destinations.ts";
import { completeGateway, gatewaysOf, MESH_GATEWAY } from "#config/kinds/virtual-service/gateway-name.ts";
import { virtualServiceKind } from "#config/kinds/virtual-service/kind.ts";
import type { VirtualService } from "#config/kinds/virtual-service/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { completeHost, hostsMatch, isSubsetOf, isWildcard } from "#config/terms/host.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { delegateProblems, knownDelegates } from "../delegates.ts";
import { fullName, type MeshObjects } from "./mesh-objects.ts";
import type { Findings } from "./message.ts";

type Routes = ConfigObject<VirtualService>;

const DOMAIN = "cluster.local";
const CLAIMS = /^@request\.auth\.claims[.[]/;

/** Destinations: their hosts, ports and subsets. */
export function* destinationFindings(mesh: MeshObjects): Findings {
  const subsets = knownSubsets(mesh);
  for (const routes of mesh.ofKind(virtualServiceKind)) {
    yield undefined;
    const object = objectKey(routes);
    const { namespace } = routes.metadata;
    for (const { host, port, subset = "" } of destinationsOf(routes.spec)) {
      const missing = (what: string) => ({ object, code: "IST0101", text: `${what} does not exist` }) as const;
      if (subset !== "" && !subsets.has(`${completeHost(host, namespace, DOMAIN)} ${subset}`))
        yield missing(`subset "${subset}" of "${host}" in a DestinationRule`);
      const known = mesh.hosts.find(host, namespace, routes.spec.exportTo);
      if (known === undefined) yield missing(`host "${host}"`);
      else if (port?.number === undefined) {
        if (known.ports.length > 1)
          yield { object, code: "IST0112", text: `"${host}" has several ports (${known.ports.join(", ")}): name one` };
      } else if (!known.ports.includes(port.number)) yield missing(`port ${port.number} of "${host}"`);
    }
  }
}

function knownSubsets(mesh: MeshObjects): ReadonlySet<string> {
  return new Set(
    mesh
      .ofKind(destinationRuleKind)
      .flatMap(({ metadata, spec }) =>
        (spec.subsets ?? []).map(({ name }) => `${completeHost(spec.host, metadata.namespace, DOMAIN)} ${name}`),
      ),
  );
}

/** Routes of gateways to hosts whose subsets are chosen by a VirtualService of the mesh: gateways do not see that one. */
export function* subsetFindings(mesh: MeshObjects): Findings {
  const all = mesh.ofKind(virtualServiceKind);
  const chosen = all.flatMap((routes) =>
    (routes.spec.http ?? [])
      .flatMap(({ route = [] }) => route.map(({ destination }) => destination))
      .filter(({ host, subset = "" }) => subset !== "" && (routes.spec.hosts ?? []).includes(host))
      .map(({ host }) => ({ host, by: fullName(routes) })),
  );
  for (const routes of all) {
    yield undefined;
    if ((routes.spec.gateways ?? []).length === 0) continue;
    for (const [i, { route = [] }] of (routes.spec.http ?? []).entries()) {
      for (const { destination } of route.filter((each) => (each.destination.subset ?? "") === ""))
        for (const { by } of chosen.filter(({ host }) => host === destination.host))
          yield {
            object: objectKey(routes),
            code: "IST0140",
            text: `http[${i}]: subsets that ${by} chooses for "${destination.host}" do not count at gateways`,
          };
    }
  }
}

/** Gateways that are named, and whether they open the hosts. */
export function* gatewayFindings(mesh: MeshObjects): Findings {
  const gateways = new Map(mesh.ofKind(gatewayKind).map((gateway) => [fullName(gateway), gateway]));
  for (const routes of mesh.ofKind(virtualServiceKind)) {
    yield undefined;
    const object = objectKey(routes);
    const { namespace } = routes.metadata;
    for (const name of routes.spec.gateways ?? []) {
      if (name === MESH_GATEWAY) continue;
      const gateway = gateways.get(completeGateway(name, namespace));
      if (gateway === undefined) yield { object, code: "IST0101", text: `gateway "${name}" does not exist` };
      const open = gateway === undefined ? [] : openHosts(gateway, namespace);
      if (!open.some((host) => (routes.spec.hosts ?? []).some((wanted) => hostsMatch(host, wanted))))
        yield { object, code: "IST0132", text: `gateway "${name}" opens none of its hosts` };
    }
  }
}

/** Hosts that a gateway opens for objects of a namespace. */
function openHosts({ metadata, spec }: ConfigObject<Gateway>, namespace: string): readonly string[] {
  return (spec.servers ?? []).flatMap(({ hosts = [] }) =>
    hosts.flatMap((host) => {
      const [scope = "", name] = host.includes("/") ? host.split("/") : ["*", host];
      const isFor = scope === "*" || (scope === "." ? metadata.namespace : scope) === namespace;
      return name !== undefined && isFor ? [name] : [];
    }),
  );
}

/** Delegates that are named in vain. Istio's analysers do not look at them; istiod warns of them in its log. */
export function* delegateFindings(mesh: MeshObjects): Findings {
  const all = mesh.ofKind(virtualServiceKind);
  const known = knownDelegates(all, mesh.mesh.defaultVirtualServiceExportTo);
  for (const routes of all) {
    yield undefined;
    for (const text of delegateProblems(routes, known)) yield { object: objectKey(routes), code: "IST0101", text };
  }
}

/** Hosts that several VirtualServices have for sidecars. */
export function* hostFindings(mesh: MeshObjects): Findings {
  const claims = new Map<string, Routes[]>();
  for (const routes of mesh.ofKind(virtualServiceKind)) {
    const { hosts = [], exportTo = [] } = routes.spec;
    if (!gatewaysOf(routes.spec, routes.metadata.namespace).includes(MESH_GATEWAY)) continue;
    const scopes = exportTo.length === 0 || exportTo.includes("*") ? ["*"] : exportTo;
    for (const scope of new Set(scopes.map((each) => (each === "." ? routes.metadata.namespace : each)))) {
      for (const host of hosts) {
        const claim = `${scope}/${isWildcard(host) ? host : completeHost(host, routes.metadata.namespace, DOMAIN)}`;
        claims.set(claim, [...(claims.get(claim) ?? []), routes]);
      }
    }
  }
  const told = new Set<Routes>();
  for (const [claim, own] of claims) {
    yield undefined;
    const [scope = "", host = ""] = claim.split("/");
    const others = scope === "*" ? [] : publicClaims(claims, host);
    const rivals = [...own, ...others];
    if (rivals.length < 2) continue;
    for (const routes of rivals.filter((each) => !told.has(each))) {
      told.add(routes);
      const text = `"${host}" is claimed by ${rivals.map(fullName).sort().join(", ")}`;
      yield { object: objectKey(routes), code: "IST0109", text };
    }
  }
}

function publicClaims(claims: ReadonlyMap<string, readonly Routes[]>, host: string): readonly Routes[] {
  return [...claims].flatMap(([claim, routes]) =>
    claim.startsWith("*/") && (isSubsetOf(host, claim.slice(2)) || isSubsetOf(claim.slice(2), host)) ? routes : [],
  );
}

/** Routes by claims of tokens that nobody checks. */
export function* claimFindings(mesh: MeshObjects): Findings {
  const checks = mesh.ofKind(requestAuthenticationKind);
  const gateways = new Map(mesh.ofKind(gatewayKind).map((gateway) => [fullName(gateway), gateway]));
  for (const routes of mesh.ofKind(virtualServiceKind)) {
    yield undefined;
    if (!usesClaims(routes.spec)) continue;
    for (const name of routes.spec.gateways ?? []) {
      const gateway = gateways.get(completeGateway(name, routes.metadata.namespace));
      for (const { metadata } of gateway === undefined ? [] : mesh.podsWith(gateway.spec.selector)) {
        const isChecked = checks.some(
          (check) =>
            ["istio-system", metadata.namespace].includes(check.metadata.namespace) &&
            hasLabels(metadata.labels, check.spec.selector?.matchLabels),
        );
        if (!isChecked)
          yield {
            object: objectKey(routes),
            code: "IST0149",
            text: `no RequestAuthentication checks tokens at pod "${metadata.name}" of gateway "${name}"`,
          };
      }
    }
  }
}

function usesClaims({ http = [] }: VirtualService): boolean {
  const names = http.flatMap(({ match = [] }) =>
    match.flatMap(({ headers = {}, withoutHeaders = {} }) => [...Object.keys(headers), ...Object.keys(withoutHeaders)]),
  );
  return names.some((name) => CLAIMS.test(name));
}
