/** Tokens of service accounts that a control plane of a test believes. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";

const ISSUER = "https://issuer.example";

export class TokenIssuer {
  readonly #key: KeyObject;
  /** Value of JWT_RULE. */
  readonly rule: string;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
    this.#key = privateKey;
    const keys = [{ ...publicKey.export({ format: "jwk" }), kid: "one", alg: "ES256" }];
    this.rule = JSON.stringify({ issuer: ISSUER, audiences: ["istio-ca"], jwks: JSON.stringify({ keys }) });
  }

  /** An `authorization` header for an account. */
  async bearer(namespace: string, serviceAccount = "default"): Promise<string> {
    const token = await new SignJWT({ sub: `system:serviceaccount:${namespace}:${serviceAccount}` })
      .setProtectedHeader({ alg: "ES256", kid: "one" })
      .setIssuer(ISSUER)
      .setAudience("istio-ca")
      .setExpirationTime("1h")
      .sign(this.#key);
    return `Bearer ${token}`;
  }
}
