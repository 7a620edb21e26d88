/** Claims of a token that somebody else checks: read to know when it ends. */
type Claims = Readonly<Record<string, unknown>>;

/** When the token ends, in milliseconds since 1970; undefined for one that never does. Throws when it is no JWT. */
export function jwtExpiry(token: string): number | undefined {
  const { exp } = jwtClaims(token);
  return typeof exp === "number" ? exp * 1000 : undefined;
}

/** For whom the token is. Throws when it is no JWT or does not say. */
export function jwtAudience(token: string): readonly string[] {
  const { aud } = jwtClaims(token);
  const audience = typeof aud === "string" ? [aud] : aud;
  if (Array.isArray(audience) && audience.every((one) => typeof one === "string")) return audience;
  throw new Error("no aud in the token claims");
}

function jwtClaims(token: string): Claims {
  const parts = token.split(".");
  if (parts.length !== 3) {
    throw new Error(`token contains an invalid number of segments: ${parts.length}, expected: 3`);
  }
  let claims: unknown;
  try {
    claims = JSON.parse(Buffer.from(parts[1] ?? "", "base64url").toString());
  } catch (cause) {
    throw new Error("failed to decode the JWT claims", { cause });
  }
  if (typeof claims !== "object" || claims === null) throw new Error("failed to decode the JWT claims");
  return claims as Claims;
}
