import { kind } from "../kind.ts";
import { wasmPluginSchema } from "./schema.ts";

/** extensions.istio.io WasmPlugin. */
export const wasmPluginKind = kind({
  group: "extensions.istio.io",
  name: "WasmPlugin",
  plural: "wasmplugins",
  versions: ["v1alpha1"],
  schema: wasmPluginSchema,
  hasNoEffect: true,
  crd: {
    description: "A WebAssembly module in proxies. Has no effect yet",
    columns: [
      { name: "URL", jsonPath: ".spec.url", description: "Where the plugin is" },
      { name: "Phase", jsonPath: ".spec.phase", description: "When it is asked" },
    ],
    needsSpec: true,
  },
});
