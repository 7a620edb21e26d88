/** `JWT_RULE`: whose tokens the control plane believes. */
import type { Parsed, Problem } from "#config/schema/problem.ts";

export interface JwtRule {
  readonly issuer: string;
  /** One of these in the token's `aud` is enough. */
  readonly audiences: readonly string[];
  readonly keys: KeyLocation;
}

/** Where the issuer's public keys are. */
export type KeyLocation =
  | { readonly kind: "inline"; readonly jwks: string }
  | { readonly kind: "uri"; readonly uri: string }
  /** By OpenID discovery from the issuer's own address. */
  | { readonly kind: "discovery" };

/** Audience of the tokens that workloads are given, and the one taken when a rule names none. */
const DEFAULT_AUDIENCE = "istio-ca";

/** Reads a rule with the API's field names, `jwks_uri` and `jwksUri` alike. */
export function parseJwtRule(text: string): Parsed<JwtRule> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return refused("", "is not JSON");
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) return refused("", "is not a JSON object");
  const fields = new Map<string, unknown>(Object.entries(json));
  const problems: Problem[] = [];
  const stringOf = (name: string): string => {
    const value = fields.get(name) ?? "";
    if (typeof value === "string") return value;
    problems.push(error(name, "must be a string"));
    return "";
  };
  const issuer = stringOf("issuer");
  const jwks = stringOf("jwks");
  const uri = stringOf("jwksUri") || stringOf("jwks_uri");
  const audiences = fields.get("audiences") ?? [];
  if (issuer === "") problems.push(error("issuer", "must be set"));
  if (!isTextList(audiences)) problems.push(error("audiences", "must be a list of strings"));
  problems.push(...checkJwks(jwks), ...checkUri(uri));
  if (problems.length > 0 || !isTextList(audiences)) return { value: undefined, problems };
  const value = { issuer, audiences: audiences.length > 0 ? audiences : [DEFAULT_AUDIENCE], keys: location(jwks, uri) };
  return { value, problems: [] };
}

function location(jwks: string, uri: string): KeyLocation {
  if (jwks !== "") return { kind: "inline", jwks };
  return uri !== "" ? { kind: "uri", uri } : { kind: "discovery" };
}

function checkJwks(jwks: string): readonly Problem[] {
  if (jwks === "") return [];
  try {
    const set: unknown = JSON.parse(jwks);
    const isSet = typeof set === "object" && set !== null && "keys" in set && Array.isArray(set.keys);
    return isSet ? [] : [error("jwks", 'must be a JSON Web Key Set: an object with a list "keys"')];
  } catch {
    return [error("jwks", "is not JSON")];
  }
}

function checkUri(uri: string): readonly Problem[] {
  if (uri === "" || (URL.canParse(uri) && /^https?:/i.test(uri))) return [];
  return [error("jwksUri", `must be an http or https address, not "${uri}"`)];
}

function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function error(field: string, message: string): Problem {
  return { field, message, severity: "error" };
}

function refused(field: string, message: string): Parsed<JwtRule> {
  return { value: undefined, problems: [error(field, message)] };
}
