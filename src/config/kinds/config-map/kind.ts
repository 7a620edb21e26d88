import { kind } from "../kind.ts";
import { configMapSchema } from "./schema.ts";

/** Kubernetes v1 ConfigMap. */
export const configMapKind = kind({
  group: "",
  name: "ConfigMap",
  plural: "configmaps",
  versions: ["v1"],
  schema: configMapSchema,
  content: ["data", "binaryData", "immutable"],
});
