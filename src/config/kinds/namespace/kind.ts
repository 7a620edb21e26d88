import { kind } from "../kind.ts";
import { namespaceSchema } from "./schema.ts";

/** Kubernetes v1 Namespace. */
export const namespaceKind = kind({
  group: "",
  name: "Namespace",
  plural: "namespaces",
  isClusterScoped: true,
  versions: ["v1"],
  schema: namespaceSchema,
  isPartial: true,
});
