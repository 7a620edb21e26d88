/** security.istio.io RequestAuthentication: which tokens of end users a workload accepts. */
import { type Infer, list, message, required } from "../../schema/message.ts";
import { bool, duration, string } from "../../schema/scalars.ts";
import { targetReferenceSchema, workloadSelectorSchema } from "../../selection/schema.ts";

const jwtRuleSchema = message({
  issuer: string(),
  audiences: list(string()),
  /** Without this and `jwks` the keys are found by OpenID discovery at the issuer. */
  jwksUri: string(),
  jwks: string(),
  fromHeaders: list(message({ name: required(string()), prefix: string() })),
  fromParams: list(string()),
  fromCookies: list(string()),
  outputPayloadToHeader: string(),
  forwardOriginalToken: bool(),
  outputClaimToHeaders: list(message({ header: required(string()), claim: required(string()) })),
  timeout: duration(),
  spaceDelimitedClaims: list(string()),
});

/** Schema of the spec of a RequestAuthentication. */
export const requestAuthenticationSchema = message({
  selector: workloadSelectorSchema,
  targetRef: targetReferenceSchema,
  targetRefs: list(targetReferenceSchema),
  jwtRules: list(jwtRuleSchema),
});

/** The spec of a RequestAuthentication. */
export type RequestAuthentication = Infer<typeof requestAuthenticationSchema>;
/** One issuer, its keys, and where its tokens are found. */
export type JwtRule = Infer<typeof jwtRuleSchema>;
