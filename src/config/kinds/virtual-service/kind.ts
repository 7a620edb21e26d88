import { kind } from "../kind.ts";
import { checkVirtualService } from "./check.ts";
import { virtualServiceSchema } from "./schema.ts";

/** networking.istio.io VirtualService. */
export const virtualServiceKind = kind({
  group: "networking.istio.io",
  name: "VirtualService",
  plural: "virtualservices",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: virtualServiceSchema,
  check: checkVirtualService,
  crd: {
    shortName: "vs",
    description: "Where requests for a host go",
    columns: [
      { name: "Gateways", jsonPath: ".spec.gateways", description: "Where the routes apply" },
      { name: "Hosts", jsonPath: ".spec.hosts", description: "Whom requests are addressed to" },
    ],
  },
});
