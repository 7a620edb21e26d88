/** What istioctl asks for over xDS (`proxy-status`, `version`), in Envoy's messages about the state of its clients. */
import { create, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type ClientConfig_GenericXdsConfig,
  ClientConfig_GenericXdsConfigSchema,
  ClientConfigSchema,
  ConfigStatus,
} from "#gen/envoy/service/status/v3/csds_pb.ts";
import { allDescriptors } from "#lib/descriptors.ts";
import type { Caller, ConnectedProxy, StatusMessage } from "#model/ports.ts";
import type { AccessOptions } from "./access.ts";
import { type DebugState, PageRefusal, type PageRequest, visibleProxies } from "./pages/page.ts";
import { configDump } from "./pages/resources.ts";

const CLIENT_CONFIG = "type.googleapis.com/envoy.service.status.v3.ClientConfig";

/** `syncz` of all proxies, or `config_dump` of the one that is named; callers see the proxies of their own namespace. */
export function statusMessages(
  { page, names }: { readonly page: string; readonly names: readonly string[] },
  caller: Caller,
  state: DebugState & Pick<AccessOptions, "seesAll">,
): readonly StatusMessage[] {
  const scope = state.seesAll(caller.namespace) ? undefined : caller.namespace;
  if (page === "syncz") {
    return visibleProxies(state, { scope, query: {} }).filter(isOfMesh).map(clientConfig);
  }
  const [proxyID, ...others] = names;
  if (page !== "config_dump" || proxyID === undefined || others.length > 0) return [];
  return dumpMessages(state, { scope, query: { proxyID } });
}

/** Programs that only ask, as istioctl does, have no proxy's settings. */
function isOfMesh({ proxy }: ConnectedProxy): boolean {
  return proxy.metadata.PROXY_CONFIG !== undefined;
}

function clientConfig({ proxy, types }: ConnectedProxy): StatusMessage {
  const { CLUSTER_ID, NAMESPACE, ISTIO_VERSION } = proxy.metadata;
  const said = Object.entries({ CLUSTER_ID, NAMESPACE, ISTIO_VERSION });
  const metadata: JsonObject = Object.fromEntries(said.filter((entry) => isTextEntry(entry)));
  const genericXdsConfigs = [...types]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([typeUrl, state]) => typeStatus(typeUrl, state));
  const message = create(ClientConfigSchema, { node: { id: proxy.id, metadata }, genericXdsConfigs });
  return { name: proxy.id, typeUrl: CLIENT_CONFIG, value: toBinary(ClientConfigSchema, message) };
}

function isTextEntry(entry: [string, unknown]): entry is [string, string] {
  return typeof entry[1] === "string";
}

type TypeState = ConnectedProxy["types"] extends ReadonlyMap<string, infer State> ? State : never;

function typeStatus(typeUrl: string, state: TypeState): ClientConfig_GenericXdsConfig {
  const { rejected, sentAt } = state;
  const lastUpdated = sentAt === undefined ? undefined : timestampFromMs(Math.round(sentAt));
  return create(ClientConfig_GenericXdsConfigSchema, {
    typeUrl,
    configStatus: statusOf(state),
    ...(lastUpdated && { lastUpdated }),
    ...(rejected !== "" && {
      errorState: { details: rejected, ...(lastUpdated && { lastUpdateAttempt: lastUpdated }) },
    }),
  });
}

function statusOf({ sent, acknowledged, rejected }: TypeState): ConfigStatus {
  if (rejected !== "") return ConfigStatus.ERROR;
  if (sent === "") return ConfigStatus.NOT_SENT;
  return acknowledged === sent ? ConfigStatus.SYNCED : ConfigStatus.STALE;
}

/** A proxy that is not here is at another replica: nothing is said of it. */
function dumpMessages(state: DebugState, request: PageRequest): readonly StatusMessage[] {
  try {
    return configDump(state, request).configs.map(({ "@type": typeUrl, ...content }) => message(typeUrl, content));
  } catch (thrown) {
    if (!(thrown instanceof PageRefusal)) throw thrown;
    return [];
  }
}

function message(typeUrl: string, content: object): StatusMessage {
  const registry = allDescriptors();
  const schema = registry.getMessage(typeUrl.slice(typeUrl.indexOf("/") + 1));
  if (schema === undefined) throw new Error(`There is no message ${typeUrl}`);
  const json: JsonObject = { ...content };
  return { name: "", typeUrl, value: toBinary(schema, fromJson(schema, json, { registry })) };
}
