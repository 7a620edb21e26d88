import { kind } from "../kind.ts";
import { checkGateway } from "./check.ts";
import { gatewaySchema } from "./schema.ts";

/** networking.istio.io Gateway. */
export const gatewayKind = kind({
  group: "networking.istio.io",
  name: "Gateway",
  plural: "gateways",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: gatewaySchema,
  check: checkGateway,
  crd: {
    shortName: "gw",
    description: "Ports that proxies at the edge of the mesh open, with their hosts and TLS",
  },
});
