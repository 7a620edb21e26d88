/** Makes ECDS resources fit for Envoy: remote Wasm modules become local files, or what stands in for them. */
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import type { ConversionResult, WasmMetrics } from "../metrics.ts";
import {
  extensionResource,
  NETWORK_WASM_TYPE,
  type RemoteModule,
  readExtension,
  remoteModule,
  type WasmExtension,
  withLocalModule,
} from "./extension.ts";

export interface ConvertOptions {
  /** The file with a module; rejects when it cannot be had. */
  readonly fetchModule: (module: RemoteModule) => Promise<string>;
  readonly log: Logger;
  readonly metrics: WasmMetrics;
}

const HTTP_RBAC_TYPE = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC";
const NETWORK_RBAC_TYPE = "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC";
const ALLOW_PREFIX = "wasm-default-allow";
const DENY_PREFIX = "wasm-default-deny";

/**
 * The resources (each an `Any`) in their order, all modules fetched at the same time. Rejects when one of them makes no
 * sense: then Envoy must see none of them, and the control plane must hear of it.
 */
export async function convertExtensions(
  resources: readonly Uint8Array[],
  options: ConvertOptions,
): Promise<readonly Uint8Array[]> {
  const startedAt = performance.now();
  const converted = await Promise.allSettled(resources.map((resource) => convert(resource, options)));
  options.metrics.conversionMilliseconds.observe(performance.now() - startedAt);
  const failures = converted.flatMap((one) => (one.status === "rejected" ? [errorText(one.reason)] : []));
  if (failures.length > 0) throw new Error(failures.join("; "));
  return converted.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
}

async function convert(resource: Uint8Array, { fetchModule, log, metrics }: ConvertOptions): Promise<Uint8Array> {
  let extension: WasmExtension | undefined;
  try {
    extension = readExtension(resource);
  } catch (thrown) {
    metrics.conversions.unmarshal_failure.add();
    throw thrown;
  }
  if (extension === undefined) {
    metrics.conversions.no_remote_load.add();
    return resource;
  }
  let result: ConversionResult = "miss_remote_fetch_hint";
  try {
    const module = remoteModule(extension);
    result = "fetch_failure";
    const file = await fetchModule(module);
    metrics.conversions.success.add();
    return withLocalModule(extension, file);
  } catch (thrown) {
    metrics.conversions[result].add();
    const stands = extension.failOpen ? "allow" : "deny";
    log.error(`Wasm module of ${extension.name} cannot be had, applying ${stands} RBAC filter: ${errorText(thrown)}`);
    return fallback(extension);
  }
}

/** A filter that lets everything pass, or nothing. Rules without policies allow nobody; no rules allow everybody. */
function fallback({ name, typeUrl, failOpen }: WasmExtension): Uint8Array {
  const network = typeUrl === NETWORK_WASM_TYPE;
  const rbac = new MessageWriter();
  if (!failOpen) rbac.bytes(1, new Uint8Array());
  rbac.string(network ? 3 : 6, failOpen ? ALLOW_PREFIX : DENY_PREFIX);
  return extensionResource(name, { typeUrl: network ? NETWORK_RBAC_TYPE : HTTP_RBAC_TYPE, value: rbac.finish() });
}
