/** networking.istio.io ProxyConfig: settings of the proxies of a workload, a namespace or the mesh. */
import { field } from "../../schema/field.ts";
import { type Infer, map, message } from "../../schema/message.ts";
import { int32, string } from "../../schema/scalars.ts";
import { selectorField } from "../../selection/schema.ts";

/** Schema of the spec of a ProxyConfig. */
export const proxyConfigObjectSchema = message({
  selector: selectorField,
  concurrency: field(int32(), {
    description: "Threads of the proxy; 0 is as many as there are cores",
    nullable: true,
    minimum: 0,
  }),
  environmentVariables: field(map(field(string(), { maxLength: 2048 })), {
    description: "More environment of the proxy",
  }),
  image: field(message({ imageType: string() }), { description: "Variant of the proxy's image" }),
});

/** The spec of a ProxyConfig object. */
export type ProxyConfigObject = Infer<typeof proxyConfigObjectSchema>;
