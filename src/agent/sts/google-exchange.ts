/**
 * Token manager plugin `GoogleTokenExchange`: the workload's token is exchanged for a federated one, and that for an
 * access token of the mesh's service account, which Google's APIs take. Access tokens are kept while they have some
 * minutes left, each for the token that it was given for: who does not have that one does not get it.
 */
import { createHash } from "node:crypto";
import { MeshError } from "#lib/mesh-error.ts";
import { askPatiently, CLOUD_SCOPE, type ExchangedToken, federatedToken } from "./federated-token.ts";
import type { ExchangeRequest } from "./request.ts";

export interface GoogleExchangeOptions {
  readonly secureTokenEndpoint: string;
  /** `%s` stands for the project's number. */
  readonly accessTokenEndpoint: string;
  readonly projectNumber: string;
  readonly trustDomain: string;
  readonly provider: string;
  readonly pauseMs?: number;
  readonly now?: () => number;
}

/** One token that was got, without the token. */
export interface TokenStatus {
  readonly token_type: "federated token" | "access token";
  readonly issue_time: string;
  readonly expire_time: string;
}

const GRACE_MS = 300_000;
const DEFAULT_LIFETIME_MS = 3_600_000;
/** What a token server says of the end of a token may be beyond all dates. */
const LATEST_DATE_MS = 8.64e15;
/** More kept tokens than a workload has scopes means that somebody is playing. */
const MOST_KEPT = 100;

export class GoogleExchange {
  readonly #options: GoogleExchangeOptions;
  readonly #federated: ReturnType<typeof federatedToken>;
  /** By subject token and scope. Tokens that are on their way are promised to all who ask. */
  readonly #kept = new Map<string, Promise<ExchangedToken>>();
  readonly #status = new Map<TokenStatus["token_type"], TokenStatus>();

  constructor(options: GoogleExchangeOptions) {
    this.#options = options;
    this.#federated = federatedToken({ ...options, endpoint: options.secureTokenEndpoint });
  }

  async exchange(request: ExchangeRequest): Promise<ExchangedToken> {
    const key = createHash("sha256").update(`${request.scope}\n${request.subjectToken}`).digest("base64");
    const kept = this.#kept.get(key);
    if (kept !== undefined) {
      const token = await kept;
      if (token.expiresAt - this.#now() > GRACE_MS) return token;
    }
    const fetched = this.#fetch(request);
    this.#keep(key, fetched);
    return fetched;
  }

  /** The newest token of each kind. */
  status(): readonly TokenStatus[] {
    return [...this.#status.values()];
  }

  #keep(key: string, token: Promise<ExchangedToken>): void {
    this.#kept.delete(key);
    this.#kept.set(key, token);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MOST_KEPT && oldest !== undefined) this.#kept.delete(oldest);
    token.catch(() => {
      if (this.#kept.get(key) === token) this.#kept.delete(key);
    });
  }

  async #fetch({ subjectToken, scope }: ExchangeRequest): Promise<ExchangedToken> {
    const { accessTokenEndpoint, projectNumber, pauseMs } = this.#options;
    const federated = await this.#federated({ subjectToken, ...(scope === "" ? {} : { scope }) });
    this.#note("federated token", federated.expiresAt);
    const answer = await askPatiently(
      {
        url: accessTokenEndpoint.replace("%s", projectNumber),
        method: "POST",
        headers: { authorization: `Bearer ${federated.token}` },
        body: { delegates: [], scope: [CLOUD_SCOPE], lifetime: "3600s" },
      },
      "access token",
      pauseMs,
    );
    const { accessToken: token, expireTime } = answer;
    if (typeof token !== "string" || token === "")
      throw new MeshError("TOKEN_SERVER_FAILED", "access token response does not have access token");
    const told = Date.parse(String(expireTime));
    const expiresAt = Number.isNaN(told) ? this.#now() + DEFAULT_LIFETIME_MS : told;
    this.#note("access token", expiresAt);
    return { token, expiresAt };
  }

  #note(type: TokenStatus["token_type"], expiresAt: number): void {
    this.#status.set(type, {
      token_type: type,
      issue_time: new Date(this.#now()).toISOString(),
      expire_time: new Date(Math.min(expiresAt, LATEST_DATE_MS)).toISOString(),
    });
  }

  #now(): number {
    return this.#options.now?.() ?? Date.now();
  }
}
