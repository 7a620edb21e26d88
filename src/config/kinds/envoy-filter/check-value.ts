/** The value of a patch: the JSON form of a message of Envoy, whose type follows from what the patch applies to. */
import { type DescMessage, fromJson, type JsonValue, type Message } from "@bufbuild/protobuf";
import { allDescriptors } from "#lib/descriptors.ts";
import { errorText } from "#lib/mesh-error.ts";
import { plainPatchJson } from "./patch-json.ts";
import type { ConfigPatch } from "./schema.ts";

/** What a patch can apply to. */
export type PatchTarget = Exclude<NonNullable<ConfigPatch["applyTo"]>, "INVALID">;

/** A message and its type. */
export interface PatchValue {
  readonly type: DescMessage;
  readonly message: Message;
}

/** The message that the value of a patch is, by what it applies to. */
const MESSAGES: Readonly<Record<PatchTarget, string>> = {
  LISTENER: "envoy.config.listener.v3.Listener",
  FILTER_CHAIN: "envoy.config.listener.v3.FilterChain",
  NETWORK_FILTER: "envoy.config.listener.v3.Filter",
  HTTP_FILTER: "envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter",
  ROUTE_CONFIGURATION: "envoy.config.route.v3.RouteConfiguration",
  VIRTUAL_HOST: "envoy.config.route.v3.VirtualHost",
  HTTP_ROUTE: "envoy.config.route.v3.Route",
  CLUSTER: "envoy.config.cluster.v3.Cluster",
  EXTENSION_CONFIG: "envoy.config.core.v3.TypedExtensionConfig",
  BOOTSTRAP: "envoy.config.bootstrap.v3.Bootstrap",
  LISTENER_FILTER: "envoy.config.listener.v3.ListenerFilter",
};

/**
 * Reads the value of a patch. Fields that we do not know are left out: the proxy may be of another version than we are.
 * Gives the reason where it cannot be read.
 */
export function parsePatchValue(applyTo: PatchTarget, value: object): PatchValue | string {
  return parseMessage(applyTo, value, true);
}

/** As `parsePatchValue`, and in words what of a value that can be read is unknown to us. */
export function parseWithUnknown(
  applyTo: PatchTarget,
  value: object,
): { readonly parsed: PatchValue | string; readonly unknown?: string } {
  const strict = parseMessage(applyTo, value, false);
  if (typeof strict !== "string") return { parsed: strict };
  return { parsed: parsePatchValue(applyTo, value), unknown: strict };
}

function parseMessage(applyTo: PatchTarget, value: object, ignoreUnknownFields: boolean): PatchValue | string {
  const registry = allDescriptors();
  const type = registry.getMessage(MESSAGES[applyTo]);
  if (type === undefined) throw new Error(`No descriptor of "${MESSAGES[applyTo]}"`);
  if (hasPrototypeKey(value)) return 'cannot have the key "__proto__"';
  try {
    const json = plainPatchJson(type, value as JsonValue, registry);
    return { type, message: fromJson(type, json, { registry, ignoreUnknownFields }) };
  } catch (thrown) {
    // What people write can be wrong in as many ways as JSON can; the reader tells which.
    return reasonOf(errorText(thrown));
  }
}

function reasonOf(text: string): string {
  const [, typeUrl] = /: (\S+) is not in the type registry/.exec(text) ?? [];
  if (typeUrl === undefined) return text;
  const hint = typeUrl.includes(".v2.") ? ": Envoy speaks v3 only" : "";
  return `names the type "${typeUrl}", which does not exist${hint}`;
}

/** Deeper than this nothing in Envoy's configuration is; reading stops by itself there. */
const MAX_DEPTH = 100;

function hasPrototypeKey(value: unknown, depth = 0): boolean {
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return false;
  return Object.hasOwn(value, "__proto__") || Object.values(value).some((inner) => hasPrototypeKey(inner, depth + 1));
}
