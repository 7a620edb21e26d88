import { createPublicKey, type JsonWebKey } from "node:crypto";
import { isRecord } from "#lib/json/is-record.ts";
import { errorText } from "#lib/mesh-error.ts";
import { checkDuration } from "../../checks/amounts.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem } from "../../schema/problem.ts";
import { checkAttachment } from "../../selection/check.ts";
import { checkHeaderName, hasLineBreak } from "../virtual-service/check-headers.ts";
import type { JwtRule, RequestAuthentication } from "./schema.ts";

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
  for (const [i, { name, prefix = "" }] of fromHeaders.entries()) {
    if (name === "") yield error(`${at}.fromHeaders[${i}].name`, "is required");
    yield* checkHeaderText(name, `${at}.fromHeaders[${i}].name`);
    yield* checkHeaderText(prefix, `${at}.fromHeaders[${i}].prefix`);
  }
  yield* checkHeaderText(rule.outputPayloadToHeader ?? "", `${at}.outputPayloadToHeader`);
  for (const [i, { header, claim }] of outputClaimToHeaders.entries()) {
    const field = `${at}.outputClaimToHeaders[${i}]`;
    if (claim === "") yield error(`${field}.claim`, "is required");
    yield* checkHeaderName(header, `${field}.header`);
  }
  yield* checkDuration(rule.timeout, `${at}.timeout`);
}

function* checkHeaderText(text: string, at: string): Iterable<Problem> {
  if (hasLineBreak(text)) yield error(at, "must not contain a line break");
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
  if (!isRecord(key)) {
    yield error(at, "must be a key");
    return;
  }
  const { kty, k, alg } = key;
  const family = FAMILIES[String(kty)];
  if (typeof alg === "string" && family !== undefined && !family.test(alg)) {
    yield error(`${at}.alg`, `must be an algorithm for keys of type ${String(kty)}, not "${alg}"`);
  }
  if (kty === "oct") {
    if (typeof k !== "string" || !/^[\w-]+$/.test(k)) yield error(`${at}.k`, "must be the secret in base64url");
    return;
  }
  try {
    const { asymmetricKeyDetails } = createPublicKey({ key: key as JsonWebKey, format: "jwk" });
    const { modulusLength = MIN_MODULUS } = asymmetricKeyDetails ?? {};
    if (modulusLength < MIN_MODULUS) yield error(at, `must be an RSA key of at least ${MIN_MODULUS} bits`);
  } catch (thrown) {
    yield error(at, `must be a key: ${errorText(thrown)}`);
  }
}

/** Shorter ones Envoy does not take. */
const MIN_MODULUS = 1024;
/** Envoy rejects a key with an algorithm of another family, and everything beside it. */
const FAMILIES: Readonly<Record<string, RegExp>> = { oct: /^HS/, RSA: /^[RP]S/, EC: /^ES/ };
