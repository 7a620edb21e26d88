import assert from "node:assert/strict";
import { test } from "node:test";
import { create, createRegistry, fromBinary, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyPack, EmptySchema, StringValueSchema, StructSchema } from "@bufbuild/protobuf/wkt";
import { TypedExtensionConfigSchema } from "#gen/envoy/config/core/v3/extension_pb.ts";
import { RBACSchema as HttpRbacSchema } from "#gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts";
import { WasmSchema as HttpWasmSchema } from "#gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts";
import { RBACSchema as NetworkRbacSchema } from "#gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts";
import { WasmSchema as NetworkWasmSchema } from "#gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts";
import { TypedStructSchema } from "#gen/udpa/type/v1/typed_struct_pb.ts";
import { createLogger } from "#lib/log/log.ts";
import { agentMetrics } from "../metrics.ts";
import { convertExtensions } from "./convert.ts";
import { HTTP_WASM_TYPE, type RemoteModule } from "./extension.ts";

const REGISTRY = createRegistry(StringValueSchema);
const extension = (typedConfig: Any | undefined) =>
  toBinary(
    AnySchema,
    anyPack(
      TypedExtensionConfigSchema,
      create(TypedExtensionConfigSchema, {
        name: "default.plugin",
        ...(typedConfig === undefined ? {} : { typedConfig }),
      }),
    ),
  );
const wasmJson = (config: JsonObject): JsonObject => ({ config });
const httpWasm = (config: JsonObject) =>
  extension(anyPack(HttpWasmSchema, fromJson(HttpWasmSchema, wasmJson(config), { registry: REGISTRY })));
const typedStruct = (value: JsonObject, typeUrl = HTTP_WASM_TYPE) =>
  extension(anyPack(TypedStructSchema, create(TypedStructSchema, { typeUrl, value })));

async function convert(resources: Uint8Array[], fetchModule?: (module: RemoteModule) => Promise<string>) {
  const lines: string[] = [];
  const metrics = agentMetrics();
  const asked: RemoteModule[] = [];
  const converted = await convertExtensions(resources, {
    fetchModule: (module) => {
      asked.push(module);
      return fetchModule?.(module) ?? Promise.resolve("/data/module.wasm");
    },
    log: createLogger({ write: (line) => lines.push(line) }),
    metrics: metrics.wasm,
  });
  const extensions = converted.map((resource) => {
    const { typeUrl, value } = fromBinary(AnySchema, resource);
    assert.equal(typeUrl, "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig");
    return fromBinary(TypedExtensionConfigSchema, value);
  });
  return { extensions, converted, asked, lines, metrics };
}

const refuse = () => Promise.reject(new Error("no such module"));

const FULL: JsonObject = {
  name: "plugin",
  rootId: "root",
  configuration: { "@type": "type.googleapis.com/google.protobuf.StringValue", value: "settings" },
  capabilityRestrictionConfig: { allowedCapabilities: { proxy_log: {} } },
  vmConfig: {
    vmId: "vm",
    runtime: "envoy.wasm.runtime.v8",
    allowPrecompiled: true,
    code: { remote: { httpUri: { uri: "oci://registry.example/a:v1", cluster: "_", timeout: "30s" }, sha256: "nil" } },
    environmentVariables: {
      hostEnvKeys: ["HOME"],
      keyValues: {
        ISTIO_META_WASM_IMAGE_PULL_SECRET: "{}",
        ISTIO_META_WASM_IMAGE_PULL_POLICY: "Always",
        ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION: "42",
        MINE: "1",
      },
    },
  },
};

test("convertExtensions() replaces a remote module by a file and keeps everything else but our own variables", async () => {
  const { extensions, asked } = await convert([httpWasm(FULL)]);
  assert.deepEqual(asked, [
    {
      url: "oci://registry.example/a:v1",
      checksum: "",
      timeoutMs: 30_000,
      pullSecret: "{}",
      pullPolicy: "Always",
      resourceName: "default.plugin",
      resourceVersion: "42",
    },
  ]);
  const expected = structuredClone(FULL) as { vmConfig: { code: JsonObject; environmentVariables: JsonObject } };
  expected.vmConfig.code = { local: { filename: "/data/module.wasm" } };
  expected.vmConfig.environmentVariables = { hostEnvKeys: ["HOME"], keyValues: { MINE: "1" } };
  const value = extensions[0]?.typedConfig?.value ?? new Uint8Array();
  assert.deepEqual(
    fromBinary(HttpWasmSchema, value),
    fromJson(HttpWasmSchema, wasmJson(expected), { registry: REGISTRY }),
  );
});

test("convertExtensions() understands a TypedStruct in both spellings, with all that a plugin may have", async () => {
  const code = {
    remote: {
      http_uri: { uri: "http://x/y", timeout: "1.500s" },
      sha256: "abc",
      retry_policy: { num_retries: 3, retry_back_off: { base_interval: "1s" } },
    },
  };
  const full = await convert([
    typedStruct(wasmJson({ ...FULL, vmConfig: { ...(FULL.vmConfig as JsonObject), code } })),
  ]);
  assert.deepEqual([full.asked[0]?.timeoutMs, full.asked[0]?.checksum], [1_500, "abc"]);
  const snake = {
    name: "p",
    fail_open: true,
    allow_on_headers_stop_iteration: true,
    failure_policy: "FAIL_OPEN",
    reload_config: { backoff: { base_interval: "1s", max_interval: "10s" } },
    configuration: {
      "@type": "type.googleapis.com/google.protobuf.Struct",
      value: { list: [1, "two", false, null, { deep: 0.5 }], empty: "" },
    },
    vm_config: { code, configuration: { "@type": "type.googleapis.com/google.protobuf.BytesValue", value: "AQI=" } },
  };
  const { extensions } = await convert([typedStruct(wasmJson(snake))]);
  const wasm = fromBinary(HttpWasmSchema, extensions[0]?.typedConfig?.value ?? new Uint8Array());
  const struct = fromBinary(StructSchema, wasm.config?.configuration?.value ?? new Uint8Array());
  assert.deepEqual(struct, fromJson(StructSchema, snake.configuration.value));
  assert.equal(extensions[0]?.typedConfig?.typeUrl, HTTP_WASM_TYPE);
});

const REMOTE = { code: { remote: { httpUri: { uri: "http://x/y" } } } };

test("convertExtensions() lets nobody pass without the module, or everybody if it fails open", async () => {
  const shut = await convert([httpWasm({ vmConfig: REMOTE })], refuse);
  const rbac = fromBinary(HttpRbacSchema, shut.extensions[0]?.typedConfig?.value ?? new Uint8Array());
  assert.deepEqual([rbac.rules !== undefined, rbac.rulesStatPrefix], [true, "wasm-default-deny"]);
  assert.equal(shut.extensions[0]?.name, "default.plugin");
  assert.match(shut.lines.join(""), /default\.plugin cannot be had, applying deny RBAC filter: no such module/);
  for (const config of [{ failOpen: true }, { failure_policy: "FAIL_OPEN" }, { failOpen: false, failurePolicy: 3 }]) {
    const { extensions } = await convert([typedStruct(wasmJson({ ...config, vmConfig: REMOTE }))], refuse);
    const open = fromBinary(HttpRbacSchema, extensions[0]?.typedConfig?.value ?? new Uint8Array());
    assert.deepEqual([open.rules, open.rulesStatPrefix], [undefined, "wasm-default-allow"]);
  }
  const { extensions } = await convert(
    [typedStruct(wasmJson({ failOpen: true, failurePolicy: "FAIL_CLOSED", vmConfig: REMOTE }))],
    refuse,
  );
  assert.notEqual(fromBinary(HttpRbacSchema, extensions[0]?.typedConfig?.value ?? new Uint8Array()).rules, undefined);
});

test("convertExtensions() treats network filters alike", async () => {
  const network = fromJson(NetworkWasmSchema, wasmJson({ vmConfig: REMOTE }));
  const good = await convert([extension(anyPack(NetworkWasmSchema, network))]);
  const wasm = fromBinary(NetworkWasmSchema, good.extensions[0]?.typedConfig?.value ?? new Uint8Array());
  assert.equal(wasm.config?.vm.value?.code?.specifier.case, "local");
  const bad = await convert([extension(anyPack(NetworkWasmSchema, network))], refuse);
  const rbac = fromBinary(NetworkRbacSchema, bad.extensions[0]?.typedConfig?.value ?? new Uint8Array());
  assert.deepEqual([rbac.rules !== undefined, rbac.statPrefix], [true, "wasm-default-deny"]);
});

test("convertExtensions() denies where the control plane did not say what to fetch, or misses the secret", async () => {
  const secret = { keyValues: { ISTIO_META_WASM_IMAGE_PULL_SECRET: "" } };
  for (const vmConfig of [{ code: { remote: {} } }, { ...REMOTE, environmentVariables: secret }]) {
    const { extensions, asked } = await convert([httpWasm({ vmConfig })]);
    assert.equal(asked.length, 0);
    assert.match(extensions[0]?.typedConfig?.typeUrl ?? "", /http\.rbac/);
  }
});

test("convertExtensions() leaves other filters and local modules as they are", async () => {
  const others = [
    extension(anyPack(EmptySchema, create(EmptySchema))),
    typedStruct({ any: "thing" }, "type.googleapis.com/other"),
    httpWasm({ vmConfig: { code: { local: { inlineString: "null" } } } }),
  ];
  const { converted, asked, metrics } = await convert(others);
  assert.deepEqual(converted, others);
  assert.equal(asked.length, 0);
  assert.match(metrics.text(), /wasm_config_conversion_count{result="no_remote_load"} 3\n/);
});

test("convertExtensions() rejects what makes no sense", async () => {
  const wrong = [
    toBinary(AnySchema, anyPack(EmptySchema, create(EmptySchema))),
    extension(undefined),
    typedStruct({ wrong: "value" }),
    typedStruct(wasmJson({ vm_config: { code: { remote: { http_uri: { uri: 5 } } } } })),
    typedStruct(wasmJson({ vm_config: { code: { remote: { http_uri: { timeout: "soon" } } } } })),
    typedStruct(wasmJson({ configuration: { "@type": "type.googleapis.com/unknown" } })),
    typedStruct(wasmJson({ failure_policy: "SOMETIMES" })),
    typedStruct(JSON.parse('{"__proto__": {}}')),
    httpWasm({ vmConfig: {} }),
    Buffer.from([0x0a, 0xff]),
  ];
  for (const [index, resource] of wrong.entries())
    await assert.rejects(convert([httpWasm(FULL), resource]), String(index));
});
