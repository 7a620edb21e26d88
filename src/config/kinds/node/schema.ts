/** Kubernetes v1 Node, whose labels say where its pods are. */
import { type Infer, list, message } from "../../schema/message.ts";
import { string } from "../../schema/scalars.ts";

/** Schema of the spec of a Node. */
export const nodeSchema = message({ providerID: string() });

/** Schema of the status of a Node. */
export const nodeStatusSchema = message({
  addresses: list(message({ type: string(), address: string() })),
  nodeInfo: message({ kubeletVersion: string() }),
});

/** The spec of a Node. */
export type Node = Infer<typeof nodeSchema>;
/** The status of a Node. */
export type NodeStatus = Infer<typeof nodeStatusSchema>;
