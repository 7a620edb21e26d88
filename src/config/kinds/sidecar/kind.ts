import { kind } from "../kind.ts";
import { checkSidecar } from "./check.ts";
import { sidecarSchema } from "./schema.ts";

/** networking.istio.io Sidecar. */
export const sidecarKind = kind({
  group: "networking.istio.io",
  name: "Sidecar",
  plural: "sidecars",
  versions: ["v1", "v1beta1", "v1alpha3"],
  schema: sidecarSchema,
  check: checkSidecar,
  crd: {
    description: "What proxies know of the mesh, and on which ports they take traffic",
  },
});
