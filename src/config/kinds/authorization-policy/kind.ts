import { kind } from "../kind.ts";
import { checkAuthorizationPolicy } from "./check.ts";
import { authorizationPolicySchema } from "./schema.ts";

/** security.istio.io AuthorizationPolicy. */
export const authorizationPolicyKind = kind({
  group: "security.istio.io",
  name: "AuthorizationPolicy",
  plural: "authorizationpolicies",
  versions: ["v1", "v1beta1"],
  schema: authorizationPolicySchema,
  check: checkAuthorizationPolicy,
  isStrict: true,
  crd: {
    shortName: "ap",
    description: "Who may call workloads, and how",
    columns: [{ name: "Action", jsonPath: ".spec.action", description: "What happens to requests that match" }],
  },
});
