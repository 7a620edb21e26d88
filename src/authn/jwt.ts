/** Tokens of service accounts: `authorization: Bearer <JWT>`, checked against one issuer. */
import { decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import { errorText } from "#lib/mesh-error.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Authentication, Authenticator } from "./authenticator.ts";
import type { JwtRule } from "./jwt-rule.ts";
import { type KeySetOptions, keySetOf } from "./key-set.ts";

/** Asymmetric only: with a shared secret or none, everybody who knows the key set could make tokens. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** No token of Kubernetes is near that. */
export const MAX_TOKEN_CHARACTERS = 16_384;
/** A token may begin this much in our future; its end is exact. */
const CLOCK_SKEW_SECONDS = 300;
const BEARER = /^Bearer +(\S+)$/i;
/** Names as Kubernetes allows them, so that nothing else can get into an identity. */
const SUBJECT = /^system:serviceaccount:([a-z0-9](?:[-a-z0-9]*[a-z0-9])?):([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)$/;

export interface JwtOptions extends KeySetOptions {
  /** Of the mesh, as it is when a token comes. */
  readonly trustDomain: () => string;
}

/** The token of an `authorization` header; undefined when it holds something else. */
export function bearerToken(authorization: string): string | undefined {
  return BEARER.exec(authorization)?.[1];
}

/**
 * The account that a subject names; undefined when it names something else. Claims are what the issuer wrote, whatever their
 * type says: a list of one text would match as that text.
 */
export function serviceAccountOf(
  subject: unknown,
): { readonly namespace: string; readonly serviceAccount: string } | undefined {
  const [, namespace, serviceAccount] = (typeof subject === "string" ? SUBJECT.exec(subject) : undefined) ?? [];
  return namespace === undefined || serviceAccount === undefined ? undefined : { namespace, serviceAccount };
}

/** Believes tokens that the rule's issuer signed for one of the rule's audiences. */
export function jwtAuthenticator(rule: JwtRule, options: JwtOptions): Authenticator {
  const keys = keySetOf(rule, options);
  return async ({ authorization }) => {
    if (authorization === undefined) return undefined;
    const token = bearerToken(authorization);
    if (token === undefined) return { refused: "the authorization header holds no bearer token" };
    if (token.length > MAX_TOKEN_CHARACTERS)
      return { refused: `the token has more than ${MAX_TOKEN_CHARACTERS} characters` };
    try {
      return callerOf(await verifiedPayload({ token, rule, keys, now: options.now() }), options.trustDomain());
    } catch (error) {
      return { refused: refusal(error, token) };
    }
  };
}

interface VerifyInput {
  readonly token: string;
  readonly rule: JwtRule;
  readonly keys: JWTVerifyGetKey;
  readonly now: number;
}

async function verifiedPayload({ token, rule, keys, now }: VerifyInput): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, keys, {
    algorithms: ALGORITHMS,
    issuer: rule.issuer,
    audience: [...rule.audiences],
    requiredClaims: ["exp", "sub"],
    clockTolerance: CLOCK_SKEW_SECONDS,
    currentDate: new Date(now),
  });
  // The tolerance above is meant for "not before" alone.
  if ((payload.exp ?? 0) * 1000 <= now) throw new errors.JWTExpired("expired", payload, "exp", "check_failed");
  return payload;
}

function callerOf(payload: JWTPayload, trustDomain: string): Authentication {
  const account = serviceAccountOf(payload.sub);
  if (account === undefined) {
    return { refused: `the token's subject ${quoted(payload.sub)} is not system:serviceaccount:NAMESPACE:NAME` };
  }
  return { caller: { identity: formatSpiffeId({ trustDomain, ...account }), ...account, provedBy: "jwt" } };
}

function refusal(error: unknown, token: string): string {
  if (error instanceof errors.JWTExpired) {
    return `the token expired at ${new Date((error.payload.exp ?? 0) * 1000).toISOString()}`;
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    return `the token's "${error.claim}" is not accepted: ${quoted(error.payload[error.claim])}`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed)
    return `the token's algorithm ${quoted(decodeProtectedHeader(token).alg)} is not accepted`;
  if (error instanceof errors.JWKSNoMatchingKey)
    return `the issuer has no key for the token's kid ${quoted(decodeProtectedHeader(token).kid)}`;
  if (error instanceof errors.JWSSignatureVerificationFailed) return "the token's signature is wrong";
  if (error instanceof errors.JOSEError) return `the token is malformed: ${error.message}`;
  return `the token cannot be checked: ${errorText(error)}`;
}

/** A stranger's value as part of a line: escaped, and not longer than a line should be. */
function quoted(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? "(missing)";
}
