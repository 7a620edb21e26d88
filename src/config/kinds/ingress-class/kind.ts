import { kind } from "../kind.ts";
import { ingressClassSchema } from "./schema.ts";

/** networking.k8s.io IngressClass. */
export const ingressClassKind = kind({
  group: "networking.k8s.io",
  name: "IngressClass",
  plural: "ingressclasses",
  isClusterScoped: true,
  versions: ["v1"],
  schema: ingressClassSchema,
  isPartial: true,
});
