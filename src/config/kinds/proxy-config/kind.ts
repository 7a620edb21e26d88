import { kind } from "../kind.ts";
import { checkProxyConfigObject } from "./check.ts";
import { proxyConfigObjectSchema } from "./schema.ts";

/** networking.istio.io ProxyConfig. */
export const proxyConfigKind = kind({
  group: "networking.istio.io",
  name: "ProxyConfig",
  plural: "proxyconfigs",
  versions: ["v1", "v1beta1", "v1alpha3"],
  servedAs: "v1beta1",
  schema: proxyConfigObjectSchema,
  check: checkProxyConfigObject,
  crd: {
    description: "Settings of proxies that hold from their start",
  },
});
