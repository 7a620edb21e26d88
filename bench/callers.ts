/** Tokens by which simulated proxies prove who they are on the TLS port, and the rule by which a control plane believes them. */
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";

const ISSUER = "https://issuer.example";
const AUDIENCE = "istio-ca";
/** All proxies have this account. */
const ACCOUNT = "bench";

export class Callers implements Disposable {
  /** For the environment variable JWT_RULE of ours and of istiod, which takes keys by their address only. */
  readonly rule: string;
  readonly #key: KeyObject;
  readonly #keys: Server;
  readonly #tokens = new Map<string, Promise<string>>();

  private constructor(key: KeyObject, keys: Server) {
    this.#key = key;
    this.#keys = keys;
    const { port } = keys.address() as AddressInfo;
    this.rule = JSON.stringify({ issuer: ISSUER, jwks_uri: `http://127.0.0.1:${port}`, audiences: [AUDIENCE] });
  }

  /** Serves the key that tokens are checked by until it is disposed of. */
  static async start(): Promise<Callers> {
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), alg: "RS256", kid: "bench" }] });
    const keys = createServer((_, response) => response.setHeader("content-type", "application/json").end(jwks));
    keys.listen(0, "127.0.0.1");
    await once(keys, "listening");
    return new Callers(privateKey, keys);
  }

  [Symbol.dispose](): void {
    this.#keys.close();
    this.#keys.closeAllConnections();
  }

  /** For proxies of a namespace. */
  token(namespace: string): Promise<string> {
    const known = this.#tokens.get(namespace);
    if (known !== undefined) return known;
    const token = new SignJWT({ sub: `system:serviceaccount:${namespace}:${ACCOUNT}` })
      .setProtectedHeader({ alg: "RS256", kid: "bench" })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setIssuedAt()
      .setExpirationTime("1h")
      .sign(this.#key);
    this.#tokens.set(namespace, token);
    return token;
  }
}
