/** How policies name the workloads or objects that they apply to. */
import { atMostOne, field, rule } from "../schema/field.ts";
import { type Infer, list, map, message, required } from "../schema/message.ts";
import { string } from "../schema/scalars.ts";

const MATCH_VALUE = rule('!self.contains("*")', "wildcard not allowed in label value match");
const LABEL_VALUE = rule('!self.contains("*")', "wildcard is not supported in selector");

/** Selects workloads by labels; no labels select all of the namespace. */
export const workloadSelectorSchema = message({
  matchLabels: field(map(field(string(), { maxLength: 63, rules: [MATCH_VALUE] })), {
    description: "Labels that a workload must have, all of them",
    maxProperties: 4096,
    rules: [
      rule('self.all(key, !key.contains("*"))', "wildcard not allowed in label key match"),
      rule("self.all(key, key.size() != 0)", "key must not be empty"),
    ],
  }),
});

/** Selects workloads of the object's own namespace; no labels select all of them. */
export const labelSelectorSchema = field(
  message({ labels: field(map(field(string(), { maxLength: 63, rules: [LABEL_VALUE] })), { maxProperties: 256 }) }),
  { description: "Workloads that it is for, by labels; without it all of the namespace" },
);

const GROUP = "^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const OBJECT_KIND = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
const OWN_NAMESPACE = rule("self.size() == 0", "cross namespace referencing is not currently supported");

export const targetReferenceSchema = message({
  group: field(string(), { maxLength: 253, pattern: GROUP }),
  kind: required(field(string(), { minLength: 1, maxLength: 63, pattern: OBJECT_KIND })),
  name: required(field(string(), { minLength: 1, maxLength: 253 })),
  namespace: field(string(), { rules: [OWN_NAMESPACE] }),
});

/** The field `selector` of a policy. */
export const selectorField = field(workloadSelectorSchema, {
  description:
    "Workloads that it is for, by labels; without it all of the namespace, or in the root namespace of the mesh",
});

/** The field `targetRefs` of a policy. */
export const targetRefsField = field(list(targetReferenceSchema), {
  description: "Objects that it is attached to, instead of a selector",
  maxItems: 16,
});

/** The fields by which a policy says what it applies to. */
export const attachmentFields = {
  selector: selectorField,
  targetRef: field(targetReferenceSchema, {
    description: "The object that it is attached to, instead of a selector",
  }),
  targetRefs: targetRefsField,
};

/** The rule of a policy with those fields. */
export const ONE_ATTACHMENT = atMostOne(
  ["selector", "targetRef", "targetRefs"],
  "only one of targetRefs or selector can be set",
);

/** The field `exportTo`. */
export const exportToField = field(list(string()), {
  description: "Namespaces that see it: `.` is its own, `*` all, `~` none",
});

/** Labels that a workload has to carry. */
export type WorkloadSelector = Infer<typeof workloadSelectorSchema>;
/** An object named by group, kind and name. */
export type TargetReference = Infer<typeof targetReferenceSchema>;
