/** Kubernetes v1 Namespace, of which only the labels and annotations matter. */
import { type Infer, message } from "../../schema/message.ts";

/** Schema of the spec of a Namespace. */
export const namespaceSchema = message({});

/** The spec of a Namespace. */
export type Namespace = Infer<typeof namespaceSchema>;
