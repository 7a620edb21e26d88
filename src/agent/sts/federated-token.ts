/** Google's Security Token Service: exchanges a token of the workload for one that Google's services take. */
import { sleep } from "#lib/async/sleep.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { askTokenServer, type JsonRequest } from "./http-json.ts";

export interface FederatedTokenOptions {
  readonly endpoint: string;
  readonly trustDomain: string;
  /** Who issued the subject token: a cluster's URL, or `GoogleComputeEngine`. */
  readonly provider: string;
  readonly pauseMs?: number;
}

export interface SubjectToken {
  readonly subjectToken: string;
  readonly scope?: string;
}

export interface ExchangedToken {
  readonly token: string;
  readonly expiresAt: number;
}

export const CLOUD_SCOPE = "https://www.googleapis.com/auth/cloud-platform";
export const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
export const JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt";
export const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";

const ATTEMPTS = 5;
/** After this time no further attempt begins: a server that does not answer at all takes the whole time of one. */
const PATIENCE_MS = 5_000;
const PAUSE_MS = 10;
const forever = new AbortController().signal;

export function federatedToken(options: FederatedTokenOptions): (subject: SubjectToken) => Promise<ExchangedToken> {
  const { endpoint, trustDomain, provider, pauseMs = PAUSE_MS } = options;
  return async ({ subjectToken, scope = CLOUD_SCOPE }) => {
    const body = {
      audience: `identitynamespace:${trustDomain}:${provider}`,
      grantType: TOKEN_EXCHANGE,
      requestedTokenType: ACCESS_TOKEN_TYPE,
      subjectTokenType: JWT_TYPE,
      subjectToken,
      scope,
    };
    const answer = await askPatiently({ url: endpoint, method: "POST", body }, "federated token", pauseMs);
    const { access_token: token, expires_in: expiresIn } = answer;
    if (typeof token !== "string" || token === "")
      throw new MeshError("TOKEN_SERVER_FAILED", "federated token response does not have access token");
    return { token, expiresAt: Date.now() + (typeof expiresIn === "number" ? expiresIn : 0) * 1000 };
  };
}

/** The JSON of a successful answer. Client errors (4xx) are final; other failures are retried for a few seconds. */
export async function askPatiently(
  request: JsonRequest,
  what: string,
  pauseMs = PAUSE_MS,
): Promise<Readonly<Record<string, unknown>>> {
  const start = performance.now();
  for (let attempt = 1; ; attempt++) {
    const isLast = () => attempt >= ATTEMPTS || performance.now() - start >= PATIENCE_MS;
    const answer = await askTokenServer(request).catch((thrown: unknown) => {
      if (isLast()) throw thrown;
      return undefined;
    });
    if (answer?.status === 200) return parseObject(answer.body, what);
    const { status = 0, body = "" } = answer ?? {};
    if (isLast() || (status >= 400 && status < 500)) {
      throw new MeshError(
        "TOKEN_SERVER_FAILED",
        `failed to exchange ${what} (HTTP status ${status}): ${body.slice(0, 500)}`,
      );
    }
    await sleep(pauseMs, forever);
  }
}

function parseObject(body: string, what: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === "object" && value !== null) return value as Readonly<Record<string, unknown>>;
  } catch {
    // told below, without the body: half of it may be a token
  }
  throw new MeshError("TOKEN_SERVER_FAILED", `failed to unmarshal ${what} response data`);
}
