/** Public keys of a token issuer, given with the rule or fetched when first needed. */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from "jose";
import { MeshError } from "#lib/mesh-error.ts";
import { fetchJson } from "./fetch-json.ts";
import type { JwtRule } from "./jwt-rule.ts";

/** Keys are fetched again after this time, so that a withdrawn key stops working. */
const MAX_AGE_MS = 600_000;
/** Tokens with unknown key ids cause at most one fetch in this time. */
const COOL_DOWN_MS = 30_000;

export interface KeySetOptions {
  readonly now: () => number;
  readonly fetchJson?: (url: string) => Promise<unknown>;
}

/** Finds the key of a token by its key id and algorithm. */
export function keySetOf({ issuer, keys }: Pick<JwtRule, "issuer" | "keys">, options: KeySetOptions): JWTVerifyGetKey {
  if (keys.kind === "inline") return createLocalJWKSet(keySet(JSON.parse(keys.jwks), "JWT_RULE"));
  const get = options.fetchJson ?? fetchJson;
  const uri = keys.kind === "uri" ? async () => keys.uri : () => discover(issuer, get);
  return fetchedKeySet(async () => {
    const url = await uri();
    return keySet(await get(url), url);
  }, options.now);
}

interface HeldKeys {
  readonly find: JWTVerifyGetKey;
  readonly at: number;
}

/** While the issuer cannot be asked its last keys are believed on: else its outage would be one of the mesh. */
function fetchedKeySet(load: () => Promise<JSONWebKeySet>, now: () => number): JWTVerifyGetKey {
  let held: HeldKeys | undefined;
  let loading: Promise<HeldKeys> | undefined;
  let triedAt = Number.NEGATIVE_INFINITY;
  const reload = () => {
    triedAt = now();
    // Callers that come meanwhile wait for the same answer.
    loading ??= load()
      .then((jwks) => {
        held = { find: createLocalJWKSet(jwks), at: now() };
        return held;
      })
      .finally(() => {
        loading = undefined;
      });
    return loading;
  };
  const mayAsk = () => now() - triedAt >= COOL_DOWN_MS;
  return async (header, token) => {
    const last = held;
    if (last === undefined) return (await reload()).find(header, token);
    const isOld = now() - last.at >= MAX_AGE_MS && mayAsk();
    const known = isOld ? await reload().catch(() => last) : last;
    try {
      return await known.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !mayAsk()) throw error;
      return (await reload()).find(header, token);
    }
  };
}

async function discover(issuer: string, get: (url: string) => Promise<unknown>): Promise<string> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const answer = await get(url);
  const found = typeof answer === "object" && answer !== null && "jwks_uri" in answer ? answer.jwks_uri : undefined;
  if (typeof found === "string") return found;
  throw new MeshError("KEYS_UNAVAILABLE", `"${url}" names no jwks_uri`);
}

function keySet(json: unknown, where: string): JSONWebKeySet {
  if (typeof json === "object" && json !== null && "keys" in json && Array.isArray(json.keys))
    return { keys: json.keys };
  throw new MeshError("KEYS_UNAVAILABLE", `"${where}" is no JSON Web Key Set`);
}
