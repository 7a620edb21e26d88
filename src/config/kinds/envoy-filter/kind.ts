import { kind } from "../kind.ts";
import { checkEnvoyFilter } from "./check.ts";
import { envoyFilterSchema } from "./schema.ts";

/** networking.istio.io EnvoyFilter. */
export const envoyFilterKind = kind({
  group: "networking.istio.io",
  name: "EnvoyFilter",
  plural: "envoyfilters",
  versions: ["v1", "v1beta1", "v1alpha3"],
  servedAs: "v1alpha3",
  schema: envoyFilterSchema,
  check: checkEnvoyFilter,
  crd: {
    description: "Changes to the configuration that proxies are given",
  },
});
