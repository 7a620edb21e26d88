/** Kubernetes v1 ConfigMap, which may hold certificates and the mesh config. */
import { type Infer, map, message } from "../../schema/message.ts";
import { bool, string } from "../../schema/scalars.ts";

/** Schema of the content of a ConfigMap: the fields beside its metadata. */
export const configMapSchema = message({
  data: map(string()),
  binaryData: map(string()),
  immutable: bool(),
});

/** The content of a ConfigMap. */
export type ConfigMap = Infer<typeof configMapSchema>;
