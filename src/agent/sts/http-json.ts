/** Requests to token servers: small answers, soon, or none. */
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { errorText, MeshError } from "#lib/mesh-error.ts";

export interface JsonRequest {
  readonly url: string;
  readonly method: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: object;
  readonly timeoutMs?: number;
}

export interface TextAnswer {
  readonly status: number;
  readonly body: string;
}

const TIMEOUT_MS = 5_000;
/** A token is some kilobytes. */
const LARGEST_ANSWER = 1024 * 1024;

/** The answer, whatever its status. Redirections are not followed: a token is for the server that was named. */
export function askTokenServer(wanted: JsonRequest): Promise<TextAnswer> {
  const { url, method, headers = {}, body, timeoutMs = TIMEOUT_MS } = wanted;
  const where = `${method} ${url}`;
  const text = body === undefined ? undefined : JSON.stringify(body);
  const type =
    text === undefined ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(text) };
  const answer = new Promise<TextAnswer>((resolve, reject) => {
    const fail = (reason: string) => reject(new Error(reason));
    const send = url.startsWith("https:") ? overHttps : overHttp;
    const outgoing = send(url, { method, headers: { ...type, ...headers }, agent: false }, (response) => {
      let received = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        received += chunk;
        if (received.length > LARGEST_ANSWER) outgoing.destroy(new Error("the answer is too long"));
      });
      response.on("error", (error) => fail(error.message));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: received }));
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    outgoing.on("error", (error) => fail(error.message));
    outgoing.on("close", () => clearTimeout(timer));
    outgoing.end(text);
  });
  // That a URL or a header is none is thrown by Node itself.
  return answer.catch((thrown: unknown) => {
    throw new MeshError("TOKEN_SERVER_FAILED", `${where}: ${errorText(thrown)}`);
  });
}
