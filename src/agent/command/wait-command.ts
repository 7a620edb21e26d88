import { Command } from "commander";
import { LONGEST_TIMER_MS, sleep } from "#lib/async/sleep.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { loggerOf } from "./log-flags.ts";
import { wholeNumber } from "./whole-number.ts";

interface WaitOptions {
  /** Growing up to the usual one where none is given. */
  readonly periodMillis?: number;
  readonly requestTimeoutMillis: number;
  readonly timeoutSeconds: number;
  readonly url: string;
}

/** Between attempts, once it takes long. */
const USUAL_PERIOD_MS = 500;

/** `wait`: ends when the proxy is ready, with a failure when that takes too long. */
export function waitCommand(): Command {
  return new Command("wait")
    .description("Waits until the Envoy proxy is ready")
    .option(
      "--periodMillis <int>",
      `number of milliseconds to wait between attempts (default: ${USUAL_PERIOD_MS}, and less at first)`,
      wholeNumber("--periodMillis"),
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
  let problem = "not asked, for there was no time";
  if (timeoutSeconds <= 0) return problem;
  const deadline = AbortSignal.timeout(Math.min(LONGEST_TIMER_MS, 1000 * timeoutSeconds));
  while (!deadline.aborted) {
    try {
      await assertReady(options, deadline);
      return undefined;
    } catch (thrown) {
      problem = errorText(thrown);
    }
    await sleep(Math.max(0, periodMillis ?? nextPause(performance.now())), deadline);
  }
  return problem;
}

/** What waits for the proxy waits a quarter longer than it has to, at most, and a proxy that is starting is asked a dozen times. */
export function nextPause(waitedMs: number): number {
  return Math.min(USUAL_PERIOD_MS, waitedMs / 4);
}

type Asked = Pick<WaitOptions, "url" | "requestTimeoutMillis">;

/** The time is that of a request with all its redirects; 0 gives it all there is. */
async function assertReady({ url, requestTimeoutMillis }: Asked, deadline: AbortSignal): Promise<void> {
  const { fetchText } = await import("../http-client.ts");
  const { aimOf, followRedirects } = await import("../redirects.ts");
  const start = new URL(url);
  const unlimited = requestTimeoutMillis === 0;
  const endsAt = unlimited ? Number.POSITIVE_INFINITY : performance.now() + requestTimeoutMillis;
  const signal = unlimited ? deadline : undefined;
  const { status } = await followRedirects(start, {
    ask: async (redirect) => {
      const timeoutMs = Math.min(LONGEST_TIMER_MS, Math.max(0, Math.ceil(endsAt - performance.now())));
      const aim = aimOf(redirect?.url ?? start);
      const answer = await fetchText({ ...aim, verified: true, timeoutMs, signal });
      return { status: answer.status, location: answer.headers.location, close: () => undefined };
    },
  });
  if (status !== 200) throw new MeshError("HTTP_FAILED", `HTTP status code ${status}`);
}
