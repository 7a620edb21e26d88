/** security.istio.io AuthorizationPolicy: who may do what to a workload. */
import { field, rule } from "../../schema/field.ts";
import { type Infer, list, message, required } from "../../schema/message.ts";
import { enumeration, string } from "../../schema/scalars.ts";
import { attachmentFields, ONE_ATTACHMENT } from "../../selection/schema.ts";

/** A list of values, and a list of those that must not be. */
const texts = list(string());
const serviceAccounts = field(list(field(string(), { maxLength: 320 })), { maxItems: 16 });

/** A service account is a namespace and a principal already. */
const ACCOUNTS_ALONE = rule(
  "!has(self.serviceAccounts) && !has(self.notServiceAccounts) || !has(self.principals) && !has(self.notPrincipals) && !has(self.namespaces) && !has(self.notNamespaces)",
  "Cannot set serviceAccounts with namespaces or principals",
);

const sourceSchema = message({
  principals: texts,
  notPrincipals: texts,
  requestPrincipals: texts,
  notRequestPrincipals: texts,
  namespaces: texts,
  notNamespaces: texts,
  /** `account`, or `namespace/account`. */
  serviceAccounts,
  notServiceAccounts: serviceAccounts,
  ipBlocks: texts,
  notIpBlocks: texts,
  remoteIpBlocks: texts,
  notRemoteIpBlocks: texts,
});

const operationSchema = message({
  hosts: texts,
  notHosts: texts,
  ports: texts,
  notPorts: texts,
  methods: texts,
  notMethods: texts,
  paths: texts,
  notPaths: texts,
});

const conditionSchema = message({ key: required(string()), values: texts, notValues: texts });

const ruleSchema = message({
  from: field(
    list(message({ source: required(field(sourceSchema, { isRequired: false, rules: [ACCOUNTS_ALONE] })) })),
    { description: "Who calls", maxItems: 512 },
  ),
  to: field(list(message({ operation: required(field(operationSchema, { isRequired: false })) })), {
    description: "What is called",
  }),
  when: field(list(conditionSchema), { description: "Further conditions" }),
});

/** Schema of the spec of an AuthorizationPolicy. */
export const authorizationPolicySchema = field(
  message({
    ...attachmentFields,
    /** Without rules nothing matches: ALLOW then lets nobody in. */
    rules: field(list(ruleSchema), {
      description: "One of these has to match; without any, none does",
      maxItems: 512,
    }),
    /** ALLOW when unset. */
    action: field(enumeration("ALLOW", "DENY", "AUDIT", "CUSTOM"), {
      description: "ALLOW, DENY, AUDIT or CUSTOM for requests that a rule matches",
    }),
    provider: field(message({ name: string() }), {
      description: "Who decides for CUSTOM, by a name of the mesh config",
    }),
  }),
  { rules: [ONE_ATTACHMENT] },
);

/** The spec of an AuthorizationPolicy. */
export type AuthorizationPolicy = Infer<typeof authorizationPolicySchema>;
/** Matches when one of `from`, one of `to` and all of `when` do. */
export type AuthorizationRule = Infer<typeof ruleSchema>;
/** Who calls. All fields have to match. */
export type AuthorizationSource = Infer<typeof sourceSchema>;
/** What is asked for. All fields have to match. */
export type AuthorizationOperation = Infer<typeof operationSchema>;
/** An attribute and the values it may have. */
export type AuthorizationCondition = Infer<typeof conditionSchema>;
