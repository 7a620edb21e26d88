import { kind } from "../kind.ts";
import { ingressSchema } from "./schema.ts";

/** networking.k8s.io Ingress. */
export const ingressKind = kind({
  group: "networking.k8s.io",
  name: "Ingress",
  plural: "ingresses",
  versions: ["v1"],
  schema: ingressSchema,
  isPartial: true,
});
