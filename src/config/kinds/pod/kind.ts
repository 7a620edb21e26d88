import { kind } from "../kind.ts";
import { podSchema, podStatusSchema } from "./schema.ts";

/** Kubernetes v1 Pod. */
export const podKind = kind({
  group: "",
  name: "Pod",
  plural: "pods",
  versions: ["v1"],
  schema: podSchema,
  status: podStatusSchema,
  isPartial: true,
});
