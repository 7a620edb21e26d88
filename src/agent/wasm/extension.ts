/**
 * ECDS resources with a Wasm filter whose module is on another machine:
 *
 *   TypedExtensionConfig.typed_config (Wasm, or a TypedStruct of it) .config .vm_config .code.remote
 *
 * Envoy gets them with `code.local.filename` in its place. Everything else stays as the control plane wrote it, but for
 * the variables by which it tells the agent how to fetch: those are not for the module's eyes.
 */
import { MeshError } from "#lib/mesh-error.ts";
import { readField, readMapEntry, readMessage, readString, readText } from "#lib/wire/read.ts";
import { rewriteMessage } from "#lib/wire/rewrite.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { EXTENSION_TYPE } from "#protocol/messages/type-urls.ts";
import { wasmFromJson } from "./plugin-json.ts";
import { readStruct } from "./struct.ts";

export type PullPolicy = "UNSPECIFIED_POLICY" | "IfNotPresent" | "Always";

/** A module to fetch, and how. */
export interface RemoteModule {
  /** `http://`, `https://` or `oci://` */
  readonly url: string;
  /** SHA-256 of the module or, for an image, of its manifest, in hex; empty when any will do. */
  readonly checksum: string;
  readonly timeoutMs: number;
  /** Docker's configuration with credentials; undefined for those of the machine. */
  readonly pullSecret: string | undefined;
  readonly pullPolicy: PullPolicy;
  /** Of the object that asks for it: with policy Always it is fetched again when this changes. */
  readonly resourceName: string;
  readonly resourceVersion: string;
}

export interface WasmExtension {
  readonly name: string;
  /** Type of the filter: HTTP or network. */
  readonly typeUrl: string;
  /** The filter's configuration. */
  readonly wasm: Uint8Array;
  /** Whether traffic passes without the module. */
  readonly failOpen: boolean;
}

export const HTTP_WASM_TYPE = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
export const NETWORK_WASM_TYPE = "type.googleapis.com/envoy.extensions.filters.network.wasm.v3.Wasm";
const TYPED_STRUCT_TYPE = "type.googleapis.com/udpa.type.v1.TypedStruct";

const SECRET_VARIABLE = "ISTIO_META_WASM_IMAGE_PULL_SECRET";
const POLICY_VARIABLE = "ISTIO_META_WASM_IMAGE_PULL_POLICY";
const VERSION_VARIABLE = "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION";
/** Variables for the agent start with it. */
const INTERNAL_PREFIX = "ISTIO_META_";
const POLICIES: readonly PullPolicy[] = ["IfNotPresent", "Always"];
const FAIL_OPEN = 3;
const DEFAULT_TIMEOUT_MS = 5_000;
/** What the control plane writes where there is none, since Envoy's checks want something. */
const NO_CHECKSUM = "nil";

/** The Wasm filter of a resource (an `Any`), if it has one with a remote module. Throws when it makes no sense. */
export function readExtension(resource: Uint8Array): WasmExtension | undefined {
  const typeUrl = readText(resource, 1);
  if (typeUrl !== EXTENSION_TYPE) throw invalid(`the resource is of type "${typeUrl}"`);
  const extension = readField(resource, 2) ?? new Uint8Array();
  const typedConfig = readField(extension, 2);
  const name = readText(extension, 1);
  if (typedConfig === undefined) throw invalid(`extension "${name}" has no typed configuration`);
  const filter = readFilter(typedConfig);
  if (filter === undefined) return undefined;
  const config = readField(filter.wasm, 1) ?? new Uint8Array();
  const code = codeOf(filter.wasm);
  if (readField(code, 2) === undefined) {
    if (readField(code, 1) === undefined) throw invalid(`extension "${name}" has neither a remote nor a local module`);
    return undefined;
  }
  return { name, ...filter, failOpen: failsOpen(config) };
}

/** What is to be fetched. Throws when the control plane did not say enough. */
export function remoteModule({ name, wasm }: WasmExtension): RemoteModule {
  const remote = readField(codeOf(wasm), 2) ?? new Uint8Array();
  const httpUri = readField(remote, 1);
  if (httpUri === undefined) throw invalid(`the remote module of "${name}" has no httpUri`);
  const variables = variablesOf(wasm);
  const pullSecret = variables.get(SECRET_VARIABLE);
  if (pullSecret === "") throw invalid(`"${name}" misses the secret to pull its image with`);
  const checksum = readText(remote, 2);
  const policy = variables.get(POLICY_VARIABLE);
  return {
    url: readText(httpUri, 1),
    checksum: checksum === NO_CHECKSUM ? "" : checksum,
    timeoutMs: durationMs(readField(httpUri, 3)) ?? DEFAULT_TIMEOUT_MS,
    pullSecret,
    pullPolicy: POLICIES.find((known) => known === policy) ?? "UNSPECIFIED_POLICY",
    resourceName: name,
    resourceVersion: variables.get(VERSION_VARIABLE) ?? "",
  };
}

/** The resource with a local file as its module. */
export function withLocalModule({ name, typeUrl, wasm }: WasmExtension, file: string): Uint8Array {
  const local = new MessageWriter().string(1, file).finish();
  const code = new MessageWriter().bytes(1, local).finish();
  const rewritten = rewriteMessage(wasm, {
    1: (config) =>
      rewriteMessage(config, { 3: (vm) => rewriteMessage(vm, { 3: () => code, 7: withoutInternalVariables }) }),
  });
  return extensionResource(name, { typeUrl, value: rewritten });
}

/** An ECDS resource: a named configuration of any type. */
export function extensionResource(
  name: string,
  { typeUrl, value }: { readonly typeUrl: string; readonly value: Uint8Array },
): Uint8Array {
  const typedConfig = new MessageWriter().string(1, typeUrl).bytes(2, value).finish();
  const extension = new MessageWriter().string(1, name).bytes(2, typedConfig).finish();
  return new MessageWriter().string(1, EXTENSION_TYPE).bytes(2, extension).finish();
}

/** The filter inside an `Any`; undefined when it is not one of Wasm. */
function readFilter(typedConfig: Uint8Array): { readonly typeUrl: string; readonly wasm: Uint8Array } | undefined {
  const typeUrl = readText(typedConfig, 1);
  const value = readField(typedConfig, 2) ?? new Uint8Array();
  if (isWasm(typeUrl)) return { typeUrl, wasm: value };
  if (typeUrl !== TYPED_STRUCT_TYPE) return undefined;
  const innerType = readText(value, 1);
  if (!isWasm(innerType)) return undefined;
  return { typeUrl: innerType, wasm: wasmFromJson(readStruct(readField(value, 2) ?? new Uint8Array())) };
}

function isWasm(typeUrl: string): boolean {
  return typeUrl === HTTP_WASM_TYPE || typeUrl === NETWORK_WASM_TYPE;
}

function vmOf(wasm: Uint8Array): Uint8Array {
  return readField(readField(wasm, 1) ?? new Uint8Array(), 3) ?? new Uint8Array();
}

function codeOf(wasm: Uint8Array): Uint8Array {
  return readField(vmOf(wasm), 3) ?? new Uint8Array();
}

function failsOpen(config: Uint8Array): boolean {
  let legacy = false;
  let policy = 0;
  readMessage(config, {
    varint: {
      5: (value) => {
        legacy = value !== 0;
      },
      7: (value) => {
        policy = value;
      },
    },
  });
  return policy === 0 ? legacy : policy === FAIL_OPEN;
}

function variablesOf(wasm: Uint8Array): ReadonlyMap<string, string> {
  const variables = new Map<string, string>();
  const message = readField(vmOf(wasm), 7);
  if (message === undefined) return variables;
  readMessage(message, {
    bytes: {
      2: (entry) => {
        const { key, value } = readMapEntry(entry);
        variables.set(key, readString(value));
      },
    },
  });
  return variables;
}

/** Without any variable left the message goes, too. */
function withoutInternalVariables(message: Uint8Array): Uint8Array | undefined {
  const kept = rewriteMessage(message, {
    2: (entry) => (readMapEntry(entry).key.startsWith(INTERNAL_PREFIX) ? undefined : entry),
  });
  return kept.length === 0 ? undefined : kept;
}

/** `google.protobuf.Duration` */
function durationMs(bytes: Uint8Array | undefined): number | undefined {
  if (bytes === undefined) return undefined;
  let ms = 0;
  readMessage(bytes, {
    varint: {
      1: (seconds) => {
        ms += seconds * 1000;
      },
      2: (nanos) => {
        ms += nanos / 1e6;
      },
    },
  });
  return ms;
}

function invalid(problem: string): MeshError {
  return new MeshError("WASM_CONFIG_INVALID", `Wasm configuration: ${problem}`);
}
