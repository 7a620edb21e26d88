/** security.istio.io RequestAuthentication: which tokens of end users a workload accepts. */
import { atMostOne, field, rule } from "../../schema/field.ts";
import { type Infer, list, message, required } from "../../schema/message.ts";
import { bool, positiveDuration, string } from "../../schema/scalars.ts";
import { attachmentFields, ONE_ATTACHMENT } from "../../selection/schema.ts";

const HEADER = "^[-_A-Za-z0-9]+$";
const nonEmpty = field(string(), { minLength: 1 });

const jwtRuleSchema = message({
  issuer: field(nonEmpty, { description: "Who issued the token" }),
  audiences: field(list(nonEmpty), { description: "Whom the token is for; one of these" }),
  /** Without this and `jwks` the keys are found by OpenID discovery at the issuer. */
  jwksUri: field(string(), {
    description: "Where keys are fetched",
    formerName: "jwks_uri",
    minLength: 1,
    maxLength: 2048,
    rules: [rule('url(self).getScheme() in ["http", "https"]', "url must have scheme http:// or https://")],
  }),
  jwks: field(string(), { description: "The keys themselves" }),
  fromHeaders: list(message({ name: required(nonEmpty), prefix: string() })),
  fromParams: list(nonEmpty),
  fromCookies: list(nonEmpty),
  outputPayloadToHeader: string(),
  forwardOriginalToken: field(bool(), { description: "Whether the application sees the token" }),
  outputClaimToHeaders: list(
    message({ header: required(field(nonEmpty, { pattern: HEADER })), claim: required(nonEmpty) }),
  ),
  timeout: positiveDuration(),
  spaceDelimitedClaims: field(list(nonEmpty), { maxItems: 64 }),
});

const ONE_KEY_SET = atMostOne(["jwksUri", "jwks_uri", "jwks"], "only one of jwks or jwksUri can be set");

/** Schema of the spec of a RequestAuthentication. */
export const requestAuthenticationSchema = field(
  message({
    ...attachmentFields,
    jwtRules: field(list(field(jwtRuleSchema, { rules: [ONE_KEY_SET] })), {
      description: "Issuers, their keys, and where their tokens are",
      maxItems: 4096,
    }),
  }),
  { rules: [ONE_ATTACHMENT] },
);

/** The spec of a RequestAuthentication. */
export type RequestAuthentication = Infer<typeof requestAuthenticationSchema>;
/** One issuer, its keys, and where its tokens are found. */
export type JwtRule = Infer<typeof jwtRuleSchema>;
