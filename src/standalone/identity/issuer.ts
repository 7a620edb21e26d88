/** Tokens of service accounts, as the API server of a cluster would issue them. */
import { generateKeyPairSync } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { calculateJwkThumbprint, importJWK, type JWK, SignJWT } from "jose";
import { MeshError } from "#lib/mesh-error.ts";
import { ignoring } from "../host/ignoring.ts";
import { writeAtomically } from "../host/write-files.ts";

const ISSUER = "https://issuer.mizzen.internal";
const AUDIENCE = "istio-ca";
const ALGORITHM = "ES256";
const LIFETIME_SECONDS = 12 * 3600;

/** Tokens are written anew this often: long before the last ones end. */
export const TOKEN_REFRESH_MS = (LIFETIME_SECONDS * 1000) / 4;

export interface TokenIssuer {
  /** Whom the control plane is to believe, as JWT_RULE. */
  readonly jwtRule: string;
  token(namespace: string, serviceAccount: string): Promise<string>;
}

/** Opens the issuer whose key lies in the folder; makes the key when there is none. */
export async function openIssuer(folder: string, now: () => number = Date.now): Promise<TokenIssuer> {
  const file = join(folder, "key.json");
  const jwk = (await readKey(file)) ?? (await makeKey(file));
  const key = await importKey(jwk, file);
  const kid = await calculateJwkThumbprint(jwk);
  const { d: _, ...publicKey } = jwk;
  const jwks = JSON.stringify({ keys: [{ ...publicKey, kid, alg: ALGORITHM, use: "sig" }] });
  return {
    jwtRule: JSON.stringify({ issuer: ISSUER, audiences: [AUDIENCE], jwks }),
    token(namespace, serviceAccount) {
      const seconds = Math.floor(now() / 1000);
      return new SignJWT({
        "kubernetes.io": { namespace, serviceaccount: { name: serviceAccount } },
      })
        .setProtectedHeader({ alg: ALGORITHM, kid })
        .setIssuer(ISSUER)
        .setAudience(AUDIENCE)
        .setSubject(`system:serviceaccount:${namespace}:${serviceAccount}`)
        .setIssuedAt(seconds)
        .setExpirationTime(seconds + LIFETIME_SECONDS)
        .sign(key);
    },
  };
}

async function readKey(file: string): Promise<JWK | undefined> {
  const text = await ignoring(["ENOENT"], () => readFile(file, "utf8"));
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw unusable(file, cause);
  }
}

async function importKey(jwk: JWK, file: string): Promise<Awaited<ReturnType<typeof importJWK>>> {
  try {
    return await importJWK(jwk, ALGORITHM);
  } catch (cause) {
    throw unusable(file, cause);
  }
}

function unusable(file: string, cause: unknown): MeshError {
  return new MeshError("ISSUER_KEY_INVALID", `Cannot use the token key "${file}": remove it to get a new one`, {
    cause,
  });
}

async function makeKey(file: string): Promise<JWK> {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwk = privateKey.export({ format: "jwk" });
  await writeAtomically({ path: file, text: JSON.stringify(jwk), mode: 0o600, owner: 0 });
  return jwk;
}
