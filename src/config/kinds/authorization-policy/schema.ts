/** security.istio.io AuthorizationPolicy: who may do what to a workload. */
import { type Infer, list, message, required } from "../../schema/message.ts";
import { enumeration, string } from "../../schema/scalars.ts";
import { targetReferenceSchema, workloadSelectorSchema } from "../../selection/schema.ts";

/** A list of values, and a list of those that must not be. */
const texts = list(string());

const sourceSchema = message({
  principals: texts,
  notPrincipals: texts,
  requestPrincipals: texts,
  notRequestPrincipals: texts,
  namespaces: texts,
  notNamespaces: texts,
  /** `account`, or `namespace/account`. */
  serviceAccounts: texts,
  notServiceAccounts: texts,
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
  from: list(message({ source: required(sourceSchema) })),
  to: list(message({ operation: required(operationSchema) })),
  when: list(conditionSchema),
});

/** Schema of the spec of an AuthorizationPolicy. */
export const authorizationPolicySchema = message({
  selector: workloadSelectorSchema,
  targetRef: targetReferenceSchema,
  targetRefs: list(targetReferenceSchema),
  /** Without rules nothing matches: ALLOW then lets nobody in. */
  rules: list(ruleSchema),
  /** ALLOW when unset. */
  action: enumeration("ALLOW", "DENY", "AUDIT", "CUSTOM"),
  /** Names the extension provider of mesh config that decides, for action CUSTOM. */
  provider: message({ name: string() }),
});

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
