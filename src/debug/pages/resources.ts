/** Pages that show what a proxy was sent, as the JSON of Envoy's own messages. */
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { allDescriptors } from "#lib/descriptors.ts";
import type { ConnectedProxy } from "#model/ports.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
  typeUrlNamed,
} from "#protocol/messages/type-urls.ts";
import { askedProxy, type DebugState, type PageRequest } from "./page.ts";

const DUMP = "type.googleapis.com/envoy.admin.v3";

/** Resources of one type. */
function resourcesOf(typeUrl: string) {
  return (state: DebugState, request: PageRequest): object => ({
    configs: messages(askedProxy(state, request), typeUrl),
  });
}

export const edsz = resourcesOf(ENDPOINT_TYPE);
export const ndsz = resourcesOf(NAME_TABLE_TYPE);
export const ecdsz = resourcesOf(EXTENSION_TYPE);

/** A message as JSON, with its type. */
export interface TypedJson {
  readonly "@type": string;
  readonly [field: string]: unknown;
}

/** All of it, as Envoy's admin port would show it, or the resources of some `types`. Of secrets there are the names. */
export function configDump(state: DebugState, request: PageRequest): { readonly configs: readonly TypedJson[] } {
  const connected = askedProxy(state, request);
  const { types, include_eds: endpoints } = request.query;
  if (types) return { configs: types.split(",").flatMap((type) => messages(connected, typeUrlNamed(type))) };
  const versionInfo = (typeUrl: string) => connected.types.get(typeUrl)?.sent ?? "";
  const of = (typeUrl: string) => messages(connected, typeUrl);
  return {
    configs: [
      { "@type": `${DUMP}.BootstrapConfigDump` },
      {
        "@type": `${DUMP}.ClustersConfigDump`,
        versionInfo: versionInfo(CLUSTER_TYPE),
        dynamicActiveClusters: of(CLUSTER_TYPE).map((cluster) => ({ cluster })),
      },
      ...(endpoints === undefined ? [] : [endpointsDump(of(ENDPOINT_TYPE))]),
      {
        "@type": `${DUMP}.ListenersConfigDump`,
        versionInfo: versionInfo(LISTENER_TYPE),
        dynamicListeners: of(LISTENER_TYPE).map((listener) => ({
          name: listener.name,
          activeState: { versionInfo: versionInfo(LISTENER_TYPE), listener },
        })),
      },
      { "@type": `${DUMP}.ScopedRoutesConfigDump` },
      {
        "@type": `${DUMP}.RoutesConfigDump`,
        dynamicRouteConfigs: of(ROUTE_TYPE).map((routeConfig) => ({
          versionInfo: versionInfo(ROUTE_TYPE),
          routeConfig,
        })),
      },
      {
        "@type": `${DUMP}.SecretsConfigDump`,
        dynamicActiveSecrets: of(SECRET_TYPE).map(({ name }) => ({ name })),
      },
      {
        "@type": `${DUMP}.EcdsConfigDump`,
        ecdsFilters: of(EXTENSION_TYPE).map((ecdsFilter) => ({ ecdsFilter })),
      },
    ],
  };
}

function endpointsDump(endpoints: readonly TypedJson[]): TypedJson {
  const dynamicEndpointConfigs = endpoints.map((endpointConfig) => ({ endpointConfig }));
  return { "@type": `${DUMP}.EndpointsConfigDump`, dynamicEndpointConfigs };
}

function messages(connected: ConnectedProxy, typeUrl: string): readonly TypedJson[] {
  if (typeUrl === SECRET_TYPE) return [...connected.resources(typeUrl)].map(([name]) => ({ "@type": typeUrl, name }));
  const registry = allDescriptors();
  const schema = registry.getMessage(typeUrl.slice(typeUrl.indexOf("/") + 1));
  if (schema === undefined) return [];
  return [...connected.resources(typeUrl)].map(([, bytes]) => ({
    "@type": typeUrl,
    ...Object(toJson(schema, fromBinary(schema, bytes), { registry })),
  }));
}
