import { createPublicKey, type JsonWebKey } from "node:crypto";
import { errorText } from "#lib/mesh-error.ts";
import type { ConfigObject } from "../config-object.ts";
import type { JwtRule, RequestAuthentication } from "../kinds/request-authentication.ts";
import { error, type Problem } from "../problem.ts";
import { checkDuration } from "./amounts.ts";
import { checkAttachment } from "./attachment.ts";
import { checkHeaderName } from "./headers.ts";

/** Checks a RequestAuthentication. */
export function* checkRequestAuthentication({ spec }: ConfigObject<RequestAuthentication>): Iterable<Problem> {
  yield* checkAttachment(spec);
  for (const [i, rule] of (spec.jwtRules ?? []).entries()) yield* checkJwtRule(rule, `spec.jwtRules[${i}]`);
}

function* checkJwtRule(rule: JwtRule, at: string): Iterable<Problem> {
  const { issuer = "", jwksUri = "", jwks = "", fromHeaders = [], outputClaimToHeaders = [] } = rule;
  if (issuer === "" && jwksUri === "") yield error(`${at}.issuer`, "is required, unless jwksUri is set");
  if (jwksUri !== "") yield* checkUri(jwksUri, `${at}.jwksUri`);
  if (jwks !== "") yield* checkKeySet(jwks, `${at}.jwks`);
  for (const name of ["audiences", "fromParams", "fromCookies"] as const) {
    for (const [i, value] of (rule[name] ?? []).entries()) {
      if (value === "") yield error(`${at}.${name}[${i}]`, "must not be empty");
    }
  }
  for (const [i, { name }] of fromHeaders.entries()) {
    if (name === "") yield error(`${at}.fromHeaders[${i}].name`, "is required");
  }
  for (const [i, { header, claim }] of outputClaimToHeaders.entries()) {
    const field = `${at}.outputClaimToHeaders[${i}]`;
    if (claim === "") yield error(`${field}.claim`, "is required");
    yield* checkHeaderName(header, `${field}.header`);
  }
  yield* checkDuration(rule.timeout, `${at}.timeout`);
}

function* checkUri(uri: string, at: string): Iterable<Problem> {
  if (!URL.canParse(uri)) yield error(at, `must be a URL, not "${uri}"`);
  else if (!/^https?:$/.test(new URL(uri).protocol))
    yield error(at, `must start with http:// or https://, not "${uri}"`);
}

/** A set of public keys in JSON, or a single one. */
function* checkKeySet(text: string, at: string): Iterable<Problem> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (thrown) {
    yield error(at, `must be a key set in JSON: ${errorText(thrown)}`);
    return;
  }
  if (typeof parsed !== "object" || parsed === null) {
    yield error(at, "must be a key set in JSON");
    return;
  }
  const keys: unknown = "keys" in parsed ? parsed.keys : [parsed];
  if (!Array.isArray(keys)) yield error(at, `must have a list "keys"`);
  else for (const [i, key] of keys.entries()) yield* checkKey(key, `${at}.keys[${i}]`);
}

function* checkKey(key: unknown, at: string): Iterable<Problem> {
  const isSecret = typeof key === "object" && key !== null && "kty" in key && key.kty === "oct";
  if (isSecret) return;
  try {
    createPublicKey({ key: key as JsonWebKey, format: "jwk" });
  } catch (thrown) {
    yield error(at, `must be a key: ${errorText(thrown)}`);
  }
}
