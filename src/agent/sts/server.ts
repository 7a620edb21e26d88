/** The Security Token Service of the agent: Envoy exchanges its token here before it calls services of a cloud. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Admission, AGENT_LIMITS } from "#lib/admission/admission.ts";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { HTTP_TIMEOUTS, limitConnections } from "#lib/net/limit-connections.ts";
import { localRequestProblem } from "#lib/net/local-request.ts";
import { ACCESS_TOKEN_TYPE, type ExchangedToken } from "./federated-token.ts";
import type { TokenStatus } from "./google-exchange.ts";
import { type ExchangeRequest, parseExchangeRequest } from "./request.ts";

/** Exchanges tokens: one for each cloud. */
export interface TokenManager {
  exchange(request: ExchangeRequest): Promise<ExchangedToken>;
  status(): readonly TokenStatus[];
}

export interface StsOptions {
  /** Of loopback. */
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly manager: TokenManager;
  readonly log: Logger;
}

const LARGEST_FORM = 256 * 1024;
const TIMEOUT_MS = 30_000;

interface Answer {
  readonly status: number;
  readonly body: object;
}

/** Listens until the signal is aborted; gives the port. */
export async function serveSts({ host, port, manager, log }: StsOptions, signal: AbortSignal): Promise<number> {
  const server = createServer({ ...HTTP_TIMEOUTS, requestTimeout: TIMEOUT_MS }, (request, response) => {
    void answer(request, manager, log)
      .catch((thrown: unknown) => refusal(400, "invalid_request", errorText(thrown)))
      .then((given) => send(response, given));
  });
  limitConnections(server, { admission: new Admission({ limits: AGENT_LIMITS }), maxBodyBytes: 2 * LARGEST_FORM });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      reject(new MeshError("STS_NOT_LISTENING", `Cannot listen on ${host} port ${port} (--stsPort)`, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  signal.addEventListener("abort", close, { once: true });
  if (signal.aborted) close();
  const { port: bound } = server.address() as AddressInfo;
  log.info(`Start listening on ${host}:${bound}`);
  return bound;
}

async function answer(request: IncomingMessage, manager: TokenManager, log: Logger): Promise<Answer> {
  const problem = localRequestProblem(request.headersDistinct);
  if (problem !== undefined) return refusal(403, "invalid_request", problem);
  const path = (request.url ?? "").split("?")[0];
  if (path !== "/token") return refusal(404, "invalid_request", `there is no ${path}: tokens are exchanged on /token`);
  const parsed = parseExchangeRequest({
    method: request.method ?? "",
    contentType: request.headers["content-type"] ?? "",
    body: await readBody(request),
  });
  if ("problem" in parsed) {
    log.warn(`STS request is invalid: ${parsed.problem}`);
    return refusal(400, "invalid_request", parsed.problem);
  }
  try {
    const { token, expiresAt } = await manager.exchange(parsed);
    const expiresIn = Math.max(0, Math.floor((expiresAt - Date.now()) / 1000));
    return {
      status: 200,
      body: {
        access_token: token,
        issued_token_type: ACCESS_TOKEN_TYPE,
        token_type: "Bearer",
        expires_in: expiresIn,
      },
    };
  } catch (thrown) {
    log.warn(`token manager fails to generate token: ${errorText(thrown)}`);
    return refusal(500, "invalid_target", errorText(thrown));
  }
}

/** Section 5.2 of RFC 6749. */
function refusal(status: number, error: string, description: string): Answer {
  return { status, body: { error, error_description: description } };
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = "";
  request.setEncoding("utf8");
  for await (const chunk of request) {
    body += chunk;
    if (body.length > LARGEST_FORM) throw new Error(`the form is longer than ${LARGEST_FORM} characters`);
  }
  return body;
}

function send(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store", pragma: "no-cache" });
  response.end(JSON.stringify(body, null, 2));
}
