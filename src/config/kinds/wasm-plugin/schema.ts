/** extensions.istio.io WasmPlugin: a WebAssembly module that proxies of workloads load. */
import { list, message, required } from "../../schema/message.ts";
import { enumeration, int32, string, struct, uint32 } from "../../schema/scalars.ts";
import { targetReferenceSchema, workloadSelectorSchema } from "../../selection/schema.ts";

/** Schema of the spec of a WasmPlugin. */
export const wasmPluginSchema = message({
  selector: workloadSelectorSchema,
  targetRef: targetReferenceSchema,
  targetRefs: list(targetReferenceSchema),
  url: required(string()),
  sha256: string(),
  imagePullPolicy: enumeration("UNSPECIFIED_POLICY", "IfNotPresent", "Always"),
  imagePullSecret: string(),
  verificationKey: string(),
  pluginConfig: struct(),
  pluginName: string(),
  phase: enumeration("UNSPECIFIED_PHASE", "AUTHN", "AUTHZ", "STATS"),
  priority: int32(),
  failStrategy: enumeration("FAIL_CLOSE", "FAIL_OPEN", "FAIL_RELOAD"),
  vmConfig: message({
    env: list(message({ name: required(string()), value: string(), valueFrom: enumeration("INLINE", "HOST") })),
  }),
  match: list(
    message({
      mode: enumeration("UNDEFINED", "CLIENT", "SERVER", "CLIENT_AND_SERVER"),
      ports: list(message({ number: required(uint32()) })),
    }),
  ),
  type: enumeration("UNSPECIFIED_PLUGIN_TYPE", "HTTP", "NETWORK"),
});
