import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Service } from "#model/service/service.ts";
import { destinationRuleFor } from "#translate/scope/destination-rules.ts";
import { scopeOf } from "#translate/scope/egress.ts";
import { seenBy } from "#translate/scope/public-part.ts";
import { viewsOf } from "#translate/views/views.ts";
import { apiForm } from "./api-form.ts";
import { askedProxy, type DebugState, type PageRequest } from "./page.ts";
import { serviceForm } from "./registryz.ts";

/** Whatever has no Sidecar object has this one. */
const DEFAULT_NAME = "default-sidecar";

/** What one proxy may see, in Istio's shape: its Sidecar, the services in its scope and the rules for them. */
export function sidecarz(state: DebugState, request: PageRequest): object {
  const { proxy } = askedProxy(state, request);
  const snapshot = seenBy(proxy, state.source.current());
  const { outbound } = viewsOf(snapshot, proxy);
  const { sidecar, services, listeners } = scopeOf(snapshot, outbound);
  const show = serviceForm(snapshot, state.source.objects());
  const rules = services.list.flatMap((service) => {
    const rule = destinationRuleFor(snapshot, service, outbound);
    return rule === undefined ? [] : [[service.hostname, [ruleOf(rule, snapshot.features.domain)]] as const];
  });
  const byHost = (service: Service) => [service.hostname, show(service)] as const;
  return {
    destinationRules: Object.fromEntries(rules),
    egressListenerServices: listeners.map((listener) => listener.services.map(show)),
    name: sidecar?.metadata.name ?? DEFAULT_NAME,
    namespace: sidecar?.metadata.namespace ?? proxy.namespace,
    outboundTrafficPolicy: sidecar?.spec.outboundTrafficPolicy ?? snapshot.mesh.outboundTrafficPolicy,
    services: services.list.map(show),
    servicesByHostname: Object.fromEntries(services.list.map(byHost)),
    sidecar: sidecar === undefined ? null : apiForm(sidecar.spec),
    version: String(snapshot.version),
  };
}

function ruleOf({ metadata, spec }: ConfigObject, domain: string): object {
  const { name, namespace } = metadata;
  const type = { group: "networking.istio.io", version: "v1", kind: "DestinationRule" };
  const { exportTo = [] } = Object(spec);
  return {
    exportTo: Object.fromEntries(exportTo.map((to: string) => [to, {}])),
    from: [{ Namespace: namespace, Name: name }],
    rule: { type, name, namespace, domain, Spec: apiForm(spec), Status: null, Extra: null },
  };
}
