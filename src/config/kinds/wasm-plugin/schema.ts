/** extensions.istio.io WasmPlugin: a WebAssembly module that proxies of workloads load. */
import { field, rule } from "../../schema/field.ts";
import { list, message, required } from "../../schema/message.ts";
import { enumeration, int32, string, struct, uint32 } from "../../schema/scalars.ts";
import { attachmentFields, ONE_ATTACHMENT } from "../../selection/schema.ts";

const MODULE_URL = rule(
  'isURL(self) ? url(self).getScheme() in ["", "http", "https", "oci", "file"] : isURL("http://" + self)',
  "url must have schema one of [http, https, file, oci]",
);
const VALUE_OF_HOST = rule(
  '!has(self.valueFrom) || self.valueFrom != "HOST" || !has(self.value)',
  "value may only be set when valueFrom is INLINE",
);

const variableSchema = field(
  message({
    name: required(field(string(), { minLength: 1, maxLength: 256 })),
    value: field(string(), { maxLength: 2048 }),
    valueFrom: enumeration("INLINE", "HOST"),
  }),
  { rules: [VALUE_OF_HOST] },
);

const matchSchema = message({
  mode: enumeration("UNDEFINED", "CLIENT", "SERVER", "CLIENT_AND_SERVER"),
  ports: field(list(message({ number: required(field(uint32(), { minimum: 1, maximum: 65535 })) })), {
    listKey: "number",
  }),
});

/** Schema of the spec of a WasmPlugin. */
export const wasmPluginSchema = field(
  message({
    ...attachmentFields,
    url: required(
      field(string(), {
        description: "Where the module is: oci://, https://, http:// or file://",
        minLength: 1,
        rules: [MODULE_URL],
      }),
    ),
    sha256: field(string(), { description: "Checksum of the module", pattern: "(^$|^[a-f0-9]{64}$)" }),
    imagePullPolicy: field(enumeration("UNSPECIFIED_POLICY", "IfNotPresent", "Always"), {
      description: "Whether the module is fetched again though it is there: IfNotPresent, Always",
    }),
    imagePullSecret: field(string(), {
      description: "The Secret by which the module is fetched",
      minLength: 1,
      maxLength: 253,
    }),
    verificationKey: field(string(), { description: "A key by which the module has to be signed" }),
    pluginConfig: field(struct(), { description: "Settings that the module is given" }),
    pluginName: field(string(), {
      description: "A name for the filter, in statistics and logs",
      minLength: 1,
      maxLength: 256,
    }),
    phase: field(enumeration("UNSPECIFIED_PHASE", "AUTHN", "AUTHZ", "STATS"), {
      description: "Where in the chain of filters it stands",
    }),
    priority: field(int32(), { description: "Higher ones of the same phase stand before", nullable: true }),
    failStrategy: field(enumeration("FAIL_CLOSE", "FAIL_OPEN", "FAIL_RELOAD"), {
      description: "Whether requests are refused when it fails",
    }),
    vmConfig: field(message({ env: field(list(variableSchema), { maxItems: 256, listKey: "name" }) }), {
      description: "Environment of the module",
    }),
    match: field(list(matchSchema), { description: "Which traffic it sees" }),
    type: field(enumeration("UNSPECIFIED_PLUGIN_TYPE", "HTTP", "NETWORK"), {
      description: "HTTP, or NETWORK for connections",
    }),
  }),
  { rules: [ONE_ATTACHMENT] },
);
