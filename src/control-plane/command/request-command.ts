import { Command } from "commander";
import { errorText } from "#lib/mesh-error.ts";
import { requestText } from "#lib/net/http-text.ts";

const ADDRESS = "127.0.0.1:15014";
const TIMEOUT_MS = 60_000;

export interface RequestOptions {
  /** Of the control plane's monitoring port. */
  readonly address: string;
  readonly write: (text: string) => void;
  readonly fail: (message: string) => void;
}

const DEFAULT_OPTIONS: RequestOptions = {
  address: ADDRESS,
  write: (text) => void process.stdout.write(text),
  fail: (message) => {
    process.stderr.write(`pilot-discovery: ${message}\n`);
    process.exitCode = 1;
  },
};

/** `request GET /debug/syncz`: asks the control plane on this machine. */
export function requestCommand({ address, write, fail }: RequestOptions = DEFAULT_OPTIONS): Command {
  return new Command("request")
    .description("Asks the control plane on this machine over HTTP")
    .argument("<method>", "GET, POST ...")
    .argument("<path>", "such as /debug/syncz or metrics")
    .argument("[body]", "what to send")
    .addHelpText(
      "after",
      "\nExamples:\n  pilot-discovery request GET /debug/syncz?pretty\n  pilot-discovery request GET /metrics\n",
    )
    .action(async (method: string, path: string, body?: string) => {
      const url = `http://${address}/${path.replace(/^\//, "")}`;
      try {
        const { status, text } = await requestText(url, { method, body, timeoutMs: TIMEOUT_MS });
        if (status > 399 && status !== 404) fail(`${url} answered with status ${status}: ${text}`);
        else write(`${text}\n`);
      } catch (error) {
        fail(`cannot ask ${url}: ${errorText(error)}`);
      }
    });
}
