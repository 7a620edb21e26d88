/** The object that a policy is attached to, where it does not select workloads by labels. */
import { type Infer, message, required } from "../../schema/message.ts";
import { string } from "../../schema/scalars.ts";

/** Schema of one entry of `targetRefs`. */
export const targetReferenceSchema = message({
  group: string(),
  kind: required(string()),
  name: required(string()),
  namespace: string(),
});

/** An object named by group, kind and name. */
export type TargetReference = Infer<typeof targetReferenceSchema>;
