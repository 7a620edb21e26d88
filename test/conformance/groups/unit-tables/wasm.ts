/** Tables about remote Wasm modules. */
import { create, createRegistry, fromBinary, fromJson, type JsonValue, toBinary, toJson } from "@bufbuild/protobuf";
import { AnySchema, anyPack, anyUnpack } from "@bufbuild/protobuf/wkt";
import { agentMetrics } from "#agent/metrics.ts";
import { convertExtensions } from "#agent/wasm/convert.ts";
import { assertRealmsAllowed, guardFor } from "#agent/wasm/server-rules.ts";
import {
  file_envoy_config_core_v3_extension,
  TypedExtensionConfigSchema,
} from "#gen/envoy/config/core/v3/extension_pb.ts";
import { file_envoy_extensions_filters_http_rbac_v3_rbac } from "#gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts";
import { file_envoy_extensions_filters_http_wasm_v3_wasm } from "#gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts";
import { file_envoy_extensions_filters_network_rbac_v3_rbac } from "#gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts";
import { file_envoy_extensions_filters_network_wasm_v3_wasm } from "#gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts";
import { file_udpa_type_v1_typed_struct } from "#gen/udpa/type/v1/typed_struct_pb.ts";
import { SILENT } from "#lib/log/log.ts";
import { compareJson } from "../../compare.ts";
import { byRow, unitTables } from "../../unit-tables.ts";

interface Conversion {
  readonly input: readonly JsonValue[];
  readonly wantOutput?: readonly JsonValue[];
  readonly wantErr: boolean;
}

const registry = createRegistry(
  file_envoy_config_core_v3_extension,
  file_envoy_extensions_filters_http_rbac_v3_rbac,
  file_envoy_extensions_filters_http_wasm_v3_wasm,
  file_envoy_extensions_filters_network_rbac_v3_rbac,
  file_envoy_extensions_filters_network_wasm_v3_wasm,
  file_udpa_type_v1_typed_struct,
);

export const wasmTables = unitTables("unit tables: wasm", ["pkg/wasm"], {
  "OCI registry WWW-Authenticate realm check": byRow<{ wwwAuth: string; expectErr: boolean }>(
    ({ wwwAuth, expectErr }) => compareJson(isRefused(wwwAuth), expectErr),
  ),
  MaybeConvertWasmExtensionConfig: byRow<Conversion>(async ({ input, wantOutput = [], wantErr }) => {
    const given = input.map((json) => fromJson(TypedExtensionConfigSchema, json, { registry }));
    const resources = given.map((extension) => toBinary(AnySchema, anyPack(TypedExtensionConfigSchema, extension)));
    try {
      const converted = await convertExtensions(resources, { fetchModule, log: SILENT, metrics: agentMetrics().wasm });
      const actual = converted.map((bytes) => extensionJson(bytes));
      const wanted = wantOutput.map((json) =>
        toJson(TypedExtensionConfigSchema, fromJson(TypedExtensionConfigSchema, json, { registry }), { registry }),
      );
      return compareJson({ failed: false, actual }, { failed: wantErr, actual: wanted });
    } catch {
      return compareJson({ failed: true }, { failed: wantErr });
    }
  }),
});

/** The data's servers say in their URL what they would send, or why they fail. */
async function fetchModule({ url }: { readonly url: string }): Promise<string> {
  const { searchParams } = new URL(url);
  const error = searchParams.get("error");
  if (error !== null) throw new Error(error);
  return searchParams.get("module") ?? "";
}

function extensionJson(resource: Uint8Array): JsonValue {
  const extension = anyUnpack(fromBinary(AnySchema, resource), TypedExtensionConfigSchema);
  return toJson(TypedExtensionConfigSchema, extension ?? create(TypedExtensionConfigSchema), { registry });
}

function isRefused(challenge: string): boolean {
  const rules = {
    insecureHosts: [],
    allowLocal: false,
    allowedRanges: [],
    clusterDomain: "cluster.local",
    proxies: {},
  };
  try {
    assertRealmsAllowed(challenge, guardFor(new URL("https://registry.example.com"), rules));
    return false;
  } catch {
    return true;
  }
}
