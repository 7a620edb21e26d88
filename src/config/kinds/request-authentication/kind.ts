import { kind } from "../kind.ts";
import { checkRequestAuthentication } from "./check.ts";
import { requestAuthenticationSchema } from "./schema.ts";

/** security.istio.io RequestAuthentication. */
export const requestAuthenticationKind = kind({
  group: "security.istio.io",
  name: "RequestAuthentication",
  plural: "requestauthentications",
  versions: ["v1", "v1beta1"],
  schema: requestAuthenticationSchema,
  check: checkRequestAuthentication,
  isStrict: true,
  crd: {
    shortName: "ra",
    description: "Tokens of end users that workloads accept",
  },
});
