import { kind } from "../kind.ts";
import { checkDestinationRule } from "./check.ts";
import { destinationRuleSchema } from "./schema.ts";

/** networking.istio.io DestinationRule. */
export const destinationRuleKind = kind({
  group: "networking.istio.io",
  name: "DestinationRule",
  plural: "destinationrules",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: destinationRuleSchema,
  check: checkDestinationRule,
  crd: {
    shortName: "dr",
    description:
      "What happens to traffic for a service once its route is chosen: subsets, load balancing, connections, TLS",
    columns: [{ name: "Host", jsonPath: ".spec.host", description: "The service that the rule is about" }],
  },
});
