/** networking.istio.io ProxyConfig: settings of the proxies of a workload, a namespace or the mesh. */
import { type Infer, map, message } from "../../schema/message.ts";
import { int32, string } from "../../schema/scalars.ts";
import { workloadSelectorSchema } from "../../selection/schema.ts";

/** Schema of the spec of a ProxyConfig. */
export const proxyConfigObjectSchema = message({
  selector: workloadSelectorSchema,
  /** Number of worker threads; 0 means one per core. */
  concurrency: int32(),
  environmentVariables: map(string()),
  image: message({ imageType: string() }),
});

/** The spec of a ProxyConfig object. */
export type ProxyConfigObject = Infer<typeof proxyConfigObjectSchema>;
