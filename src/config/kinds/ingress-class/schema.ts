/** networking.k8s.io IngressClass. */
import { type Infer, message } from "../../schema/message.ts";
import { string, struct } from "../../schema/scalars.ts";

/** Schema of the spec of an IngressClass. */
export const ingressClassSchema = message({ controller: string(), parameters: struct() });

/** The spec of an IngressClass. */
export type IngressClass = Infer<typeof ingressClassSchema>;
