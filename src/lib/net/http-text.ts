import { request } from "node:http";
import { limitConnecting } from "./connect-limit.ts";

export interface TextRequest {
  readonly method?: string;
  readonly body?: string | undefined;
  /** For the whole answer; a connection has its own limit. */
  readonly timeoutMs: number;
}

export interface TextAnswer {
  readonly status: number;
  readonly text: string;
}

/** The answer to an HTTP request, whatever its status. */
export function requestText(url: string, { method = "GET", body, timeoutMs }: TextRequest): Promise<TextAnswer> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(timeoutMs);
    const sent = request(url, { method, agent: false, signal }, async (response) => {
      try {
        let text = "";
        response.setEncoding("utf8");
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, text });
      } catch (thrown) {
        reject(thrown);
      }
    });
    limitConnecting(sent);
    sent.on("error", reject);
    sent.end(body);
  });
}
