import { Command } from "commander";
import { sleep } from "#lib/async/sleep.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { loggerOf } from "./log-flags.ts";
import { wholeNumber } from "./whole-number.ts";

interface WaitOptions {
  readonly periodMillis: number;
  readonly requestTimeoutMillis: number;
  readonly timeoutSeconds: number;
  readonly url: string;
}

/** `wait`: ends when the proxy is ready, with a failure when that takes too long. */
export function waitCommand(): Command {
  return new Command("wait")
    .description("Waits until the Envoy proxy is ready")
    .option(
      "--periodMillis <int>",
      "number of milliseconds to wait between attempts",
      wholeNumber("--periodMillis"),
      500,
    )
    .option(
      "--requestTimeoutMillis <int>",
      "number of milliseconds to wait for response",
      wholeNumber("--requestTimeoutMillis"),
      500,
    )
    .option(
      "--timeoutSeconds <int>",
      "maximum number of seconds to wait for Envoy to be ready",
      wholeNumber("--timeoutSeconds"),
      60,
    )
    .option("--url <string>", "URL to use in requests", "http://localhost:15021/healthz/ready")
    .action(async (options: WaitOptions, self: Command) => {
      loggerOf(self).info(`Waiting for Envoy proxy to be ready (timeout: ${options.timeoutSeconds} seconds)...`);
      const problem = await waitUntilReady(options);
      if (problem === undefined) loggerOf(self).info("Envoy is ready!");
      else {
        const message = `timeout waiting for Envoy proxy to become ready. Last error: ${problem}`;
        throw new MeshError("ENVOY_NOT_READY", message);
      }
    });
}

/** The last problem, when the time is over. */
async function waitUntilReady({ periodMillis, timeoutSeconds, ...options }: WaitOptions): Promise<string | undefined> {
  const deadline = AbortSignal.timeout(1000 * Math.max(0, timeoutSeconds));
  let problem = "not asked yet";
  while (!deadline.aborted) {
    try {
      await assertReady(options);
      return undefined;
    } catch (thrown) {
      problem = errorText(thrown);
    }
    await sleep(periodMillis, deadline);
  }
  return problem;
}

const MAX_REDIRECTS = 10;

type Asked = Pick<WaitOptions, "url" | "requestTimeoutMillis">;

async function assertReady({ url, requestTimeoutMillis }: Asked, redirects = 0): Promise<void> {
  const { fetchText } = await import("#agent/http-client.ts");
  const { protocol, hostname, port, pathname, search } = new URL(url);
  const https = protocol === "https:";
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  const { status, headers } = await fetchText({
    host,
    port: Number(port || (https ? 443 : 80)),
    https,
    path: pathname + search,
    timeoutMs: requestTimeoutMillis,
  });
  const { location } = headers;
  if ([301, 302, 303, 307, 308].includes(status) && location !== undefined && redirects < MAX_REDIRECTS)
    return assertReady({ url: new URL(location, url).href, requestTimeoutMillis }, redirects + 1);
  if (status !== 200) throw new MeshError("HTTP_FAILED", `HTTP status code ${status}`);
}
