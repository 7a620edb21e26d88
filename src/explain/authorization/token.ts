/** What a workload makes of a token, by the rules of the RequestAuthentications that select it. */
import {
  createHmac,
  createPublicKey,
  createSecretKey,
  type JsonWebKey,
  type KeyObject,
  timingSafeEqual,
  verify,
} from "node:crypto";
import type { JwtRule } from "#config/kinds/request-authentication/schema.ts";
import { spaceDelimitedClaims } from "#model/identity/token-claims.ts";
import type { Claims } from "./request.ts";

/** The claims that policies see, or why the request is refused before they look at it. */
export type TokenOutcome =
  | {
      readonly claims: Claims | undefined;
      /** What people should know, such as that the signature could not be checked. */
      readonly note: string | undefined;
    }
  | { readonly refused: string; readonly status: 401 | 403 };

/** Claims as policies see them: those that are lists by convention are lists. */
export function visibleClaims(claims: Claims, rule: JwtRule | undefined): Claims {
  const lists = spaceDelimitedClaims(rule?.spaceDelimitedClaims);
  const entries = Object.entries(claims).map(([name, value]) =>
    lists.includes(name) && typeof value === "string"
      ? [name, value.split(" ").filter((part) => part !== "")]
      : [name, value],
  );
  return Object.fromEntries(entries);
}

/** Claims that somebody says a good token has. Without a rule for its issuer nobody looks at them. */
export function claimedOutcome(claims: Claims, rules: readonly JwtRule[]): TokenOutcome {
  const rule = ruleFor(claims, rules);
  if (rules.length === 0)
    return { claims: undefined, note: "no RequestAuthentication reads tokens here: claims are not seen" };
  if (rule === undefined) return { refused: `no rule accepts issuer ${JSON.stringify(claims.iss ?? "")}`, status: 401 };
  return { claims: visibleClaims(claims, rule), note: undefined };
}

/** Reads a token as the proxy would at a time in milliseconds. */
export function tokenOutcome(token: string, rules: readonly JwtRule[], now: number): TokenOutcome {
  if (rules.length === 0)
    return { claims: undefined, note: "no RequestAuthentication reads tokens here: the token is not seen" };
  const [head = "", body = "", signature = ""] = token.trim().split(".");
  const header = decoded(head);
  const claims = decoded(body);
  if (header === undefined || claims === undefined) return { refused: "it is no JSON Web Token", status: 401 };
  const rule = ruleFor(claims, rules);
  if (rule === undefined) return { refused: `no rule accepts issuer ${JSON.stringify(claims.iss ?? "")}`, status: 401 };
  if (!isTimely(claims, now)) return { refused: "it is not valid at this time", status: 401 };
  const { audiences = [], jwks = "" } = rule;
  if (audiences.length > 0 && ![claims.aud].flat().some((one) => audiences.includes(String(one)))) {
    return { refused: `it is not for ${audiences.join(" or ")}`, status: 403 };
  }
  if (jwks === "") {
    return { claims: visibleClaims(claims, rule), note: "the keys are not here: the signature is taken to be good" };
  }
  const isGood = keysOf(jwks, header).some((key) => isSigned(`${head}.${body}`, signature, { key, alg: header.alg }));
  if (!isGood) return { refused: "no key of the rule fits its signature", status: 401 };
  return { claims: visibleClaims(claims, rule), note: undefined };
}

function ruleFor({ iss }: Claims, rules: readonly JwtRule[]): JwtRule | undefined {
  return rules.find(({ issuer = "" }) => issuer === iss || issuer === "");
}

/** Clocks may differ by a minute. */
const SKEW_S = 60;

function isTimely({ exp, nbf }: Claims, now: number): boolean {
  const seconds = now / 1000;
  if (typeof exp === "number" && seconds > exp + SKEW_S) return false;
  return !(typeof nbf === "number" && seconds < nbf - SKEW_S);
}

function decoded(part: string): Claims | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Claims) : undefined;
  } catch {
    // Anybody may send anything as a token.
    return undefined;
  }
}

function keysOf(jwks: string, { kid }: Claims): readonly KeyObject[] {
  const parsed: unknown = JSON.parse(jwks);
  const keys = typeof parsed === "object" && parsed !== null && "keys" in parsed ? parsed.keys : [parsed];
  const all: readonly JsonWebKey[] = Array.isArray(keys) ? keys : [];
  return all
    .filter((key) => kid === undefined || key.kid === undefined || key.kid === kid)
    .map((key) =>
      key.kty === "oct"
        ? createSecretKey(Buffer.from(String(key.k), "base64url"))
        : createPublicKey({ key, format: "jwk" }),
    );
}

/** The algorithm has to fit the key: a public key is no shared secret. */
function isSigned(
  text: string,
  signature: string,
  { key, alg }: { readonly key: KeyObject; readonly alg: unknown },
): boolean {
  const [, family = "", bits = ""] = /^(HS|RS|PS|ES)(256|384|512)$/.exec(String(alg)) ?? [];
  const given = Buffer.from(signature, "base64url");
  if (key.type === "secret") {
    if (family !== "HS") return false;
    const wanted = createHmac(`sha${bits}`, key).update(text).digest();
    return wanted.length === given.length && timingSafeEqual(wanted, given);
  }
  if (family === "ES") {
    return (
      key.asymmetricKeyType === "ec" &&
      verify(`sha${bits}`, Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }, given)
    );
  }
  return family === "RS" && key.asymmetricKeyType === "rsa" && verify(`sha${bits}`, Buffer.from(text), key, given);
}
