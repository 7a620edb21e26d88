import { kind } from "../kind.ts";
import { nodeSchema, nodeStatusSchema } from "./schema.ts";

/** Kubernetes v1 Node. */
export const nodeKind = kind({
  group: "",
  name: "Node",
  plural: "nodes",
  isClusterScoped: true,
  versions: ["v1"],
  schema: nodeSchema,
  status: nodeStatusSchema,
  isPartial: true,
});
