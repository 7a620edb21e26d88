/** Requests to metadata servers: near if there is one, and never worth a long wait. */
import { request as overHttp } from "node:http";
import { request as overHttps } from "node:https";
import { MeshError } from "#lib/mesh-error.ts";

export interface MetadataRequest {
  readonly url: string;
  readonly method?: "GET" | "PUT";
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Take an answer of any status. */
  readonly anyStatus?: boolean;
}

export interface MetadataAnswer {
  readonly body: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Far more than any metadata is long. */
const LARGEST_ANSWER = 1024 * 1024;

/** The answer when it is one of success; rejects otherwise. */
export function askMetadata({
  url,
  method = "GET",
  headers = {},
  timeoutMs,
  anyStatus = false,
}: MetadataRequest): Promise<MetadataAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string) => reject(new MeshError("PLATFORM_UNKNOWN", `${method} ${url}: ${reason}`));
    const send = url.startsWith("https:") ? overHttps : overHttp;
    const outgoing = send(url, { method, headers: { ...headers }, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        body += chunk;
        if (body.length > LARGEST_ANSWER) outgoing.destroy(new Error("the answer is too long"));
      });
      response.on("error", (error) => fail(error.message));
      response.on("end", () => {
        const { statusCode = 0 } = response;
        if (anyStatus || (statusCode >= 200 && statusCode < 300)) resolve({ body, headers: response.headers });
        else fail(`status ${statusCode}`);
      });
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    outgoing.on("error", (error) => fail(error.message));
    outgoing.on("close", () => clearTimeout(timer));
    outgoing.end();
  });
}

/** The body of an answer; undefined when there is none. */
export async function askOrNothing(wanted: MetadataRequest): Promise<string | undefined> {
  try {
    return (await askMetadata(wanted)).body;
  } catch {
    return undefined; // no such value, or no such server: the same to whoever asks
  }
}
