/** Probes an application by HTTP, TCP, gRPC or a command. */
import { execFile } from "node:child_process";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { send } from "../http-client.ts";
import type { Connect } from "../place.ts";
import { aimOf, followRedirects, type Redirect } from "../redirects.ts";
import type { ProbeMethod } from "./readiness-probe.ts";

export interface ProbeOptions {
  /** Where the application is unless the probe says otherwise. */
  readonly host: string;
  readonly timeoutMs: number;
  readonly connect: Connect;
  /** Begins the command line of a command that probes. */
  readonly enter: readonly string[];
}

type HttpMethod = Extract<ProbeMethod, { kind: "http" }>;

const USER_AGENT = "istio-probe/1.0";

/** Rejects, with the reason, when the application is not ready. */
export async function probe(method: ProbeMethod, options: ProbeOptions): Promise<void> {
  const deadline = new AbortController();
  const late = new MeshError("PROBE_FAILED", `no answer in ${options.timeoutMs} ms`);
  const timer = setTimeout(() => deadline.abort(late), options.timeoutMs);
  try {
    await run(method, options, deadline.signal);
  } catch (thrown) {
    throw deadline.signal.aborted ? late : thrown;
  } finally {
    clearTimeout(timer);
  }
}

async function run(method: ProbeMethod, options: ProbeOptions, signal: AbortSignal): Promise<void> {
  const { host, connect } = options;
  if (method.kind === "exec") await execute(method.command, options, signal);
  else if (method.kind === "http") await probeHttp(method, options, signal);
  else if (method.kind === "tcp") (await connect({ host: method.host || host, port: method.port }, signal)).destroy();
  else {
    const { checkGrpcHealth } = await import("../status/probes/grpc.ts");
    const headers = { "user-agent": [USER_AGENT] };
    const request = { headers, signal };
    const target = { host, statusPort: 0, connect, http2: true };
    const input = { request, target, signal };
    if (!(await checkGrpcHealth({ ...method, timeoutMs: options.timeoutMs }, input)))
      throw new MeshError("PROBE_FAILED", `gRPC service on port ${method.port} is not serving`);
  }
}

async function probeHttp(method: HttpMethod, options: ProbeOptions, signal: AbortSignal): Promise<void> {
  const { timeoutMs, connect } = options;
  const start = probeUrl(method, options.host);
  const { status } = await followRedirects(start, {
    ask: async (redirect) => {
      const headers = headersOf(method, start, redirect);
      const response = await send({ ...aimOf(redirect?.url ?? start), headers, timeoutMs, connect, signal });
      response.destroy();
      return { status: response.statusCode ?? 0, location: response.headers.location, close: () => undefined };
    },
  });
  if (status < 200 || status >= 400)
    throw new MeshError("PROBE_FAILED", `status code was not from [200,400), bad code ${status}`);
}

/** Of the path only what a path can hold counts: it is the application that is probed. */
function probeUrl({ https, host: given, port, path }: HttpMethod, own: string): URL {
  const host = given || own;
  const root = new URL(`${https ? "https" : "http"}://${host.includes(":") ? `[${host}]` : host}:${port}`);
  const { pathname, search } = URL.parse(path, root.href) ?? root;
  return new URL(pathname + search, root);
}

function headersOf({ headers }: HttpMethod, start: URL, redirect: Redirect | undefined): Record<string, string[]> {
  const referer = redirect?.referer === undefined ? {} : { referer: [redirect.referer] };
  const { host } = redirect?.url ?? start;
  const result: Record<string, string[]> = {
    ...referer,
    host: [host],
    "user-agent": [USER_AGENT],
    connection: ["close"],
  };
  const given = new Set<string>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    // Another host is asked under its own name.
    if (key === "host" && redirect?.sameName === false) continue;
    result[key] = given.has(key) ? [...(result[key] ?? []), value] : [value];
    given.add(key);
  }
  return result;
}

async function execute(command: readonly string[], { enter }: ProbeOptions, signal: AbortSignal): Promise<void> {
  if (command.length === 0) throw new MeshError("PROBE_FAILED", "there is no command to probe with");
  const [program = "", ...args] = [...enter, ...command];
  return new Promise((resolve, reject) => {
    execFile(program, args, { signal, killSignal: "SIGKILL", windowsHide: true }, (error) => {
      if (error === null) resolve();
      else reject(new MeshError("PROBE_FAILED", `command failed: ${errorText(error).split("\n")[0]}`));
    });
  });
}
