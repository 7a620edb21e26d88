import { isIP } from "node:net";
import { checkDnsLabel, checkFqdn } from "../checks/names.ts";
import { checkPort } from "../checks/network.ts";
import { error, type Problem } from "../schema/problem.ts";
import type { ExtensionProvider } from "./extension-provider.ts";

/** Kinds of providers that are servers, and so have an address. */
const SERVERS = [
  "envoyExtAuthzHttp",
  "envoyExtAuthzGrpc",
  "zipkin",
  "lightstep",
  "datadog",
  "opencensus",
  "skywalking",
  "opentelemetry",
  "envoyHttpAls",
  "envoyTcpAls",
  "envoyOtelAls",
] as const;

/** Statuses that Envoy can answer with. */
const STATUS = /^(0|100|20[0-8]|226|30[0-578]|4(?:0\d|1[0-7]|2[1-4689]|31)|50[0-8]|51[01])$/;

/** Checks the extension providers of a mesh config. */
export function* checkExtensionProviders(providers: readonly ExtensionProvider[], at: string): Iterable<Problem> {
  const names = new Set<string>();
  for (const [i, provider] of providers.entries()) {
    const field = `${at}[${i}]`;
    const { name = "" } = provider;
    if (name === "") yield error(`${field}.name`, "must not be empty: without a name nothing can refer to it");
    else if (names.has(name)) yield error(`${field}.name`, `is there twice: "${name}"`);
    names.add(name);
    yield* checkExtensionProvider(provider, field);
  }
}

/** Checks one provider: it is of use only without problems. */
export function* checkExtensionProvider(provider: ExtensionProvider, at: string): Iterable<Problem> {
  const { name: _, ...provided } = provider;
  if (Object.keys(provided).length === 0) yield error(at, "does not say what it provides");
  for (const kind of SERVERS) {
    const server = provider[kind];
    if (server === undefined) continue;
    yield* checkServiceName(server.service ?? "", `${at}.${kind}.service`);
    yield* checkPort(server.port ?? 0, `${at}.${kind}.port`);
  }
  const { lightstep, opentelemetry, envoyExtAuthzHttp: http, envoyExtAuthzGrpc: grpc } = provider;
  if (lightstep !== undefined && !lightstep.accessToken) yield error(`${at}.lightstep.accessToken`, "is required");
  if (opentelemetry?.http !== undefined && opentelemetry.grpc !== undefined) {
    yield error(`${at}.opentelemetry.grpc`, "cannot be set together with http");
  }
  if (http !== undefined) yield* checkHttpAuthorizer(http, `${at}.envoyExtAuthzHttp`);
  yield* checkStatus(grpc?.statusOnError, `${at}.envoyExtAuthzGrpc.statusOnError`);
  yield* checkQuestion(http, `${at}.envoyExtAuthzHttp`);
  yield* checkQuestion(grpc, `${at}.envoyExtAuthzGrpc`);
}

/** What Envoy refuses a listener for. */
function* checkQuestion(
  asked: ExtensionProvider["envoyExtAuthzHttp"] | ExtensionProvider["envoyExtAuthzGrpc"],
  at: string,
): Iterable<Problem> {
  if ((asked?.timeout ?? 0) < 0) yield error(`${at}.timeout`, "must not be negative");
  const body = asked?.includeRequestBodyInCheck;
  if (body !== undefined && !body.maxRequestBytes) {
    yield error(`${at}.includeRequestBodyInCheck.maxRequestBytes`, "must be at least 1");
  }
}

const HEADER_LISTS = [
  "includeRequestHeadersInCheck",
  "includeHeadersInCheck",
  "headersToDownstreamOnDeny",
  "headersToDownstreamOnAllow",
  "headersToUpstreamOnAllow",
] as const;
/** What no path of a URL can have: a control character, or a percent sign that begins no escape. */
const NO_PATH = /\p{Cc}|^[^?#]*%(?![\da-f]{2})/iu;

function* checkHttpAuthorizer(
  http: NonNullable<ExtensionProvider["envoyExtAuthzHttp"]>,
  at: string,
): Iterable<Problem> {
  const { pathPrefix = "", statusOnError } = http;
  if (pathPrefix !== "" && !pathPrefix.startsWith("/")) {
    yield error(`${at}.pathPrefix`, `must begin with "/", not "${pathPrefix}"`);
  } else if (NO_PATH.test(pathPrefix)) yield error(`${at}.pathPrefix`, `is no path: "${pathPrefix}"`);
  yield* checkStatus(statusOnError, `${at}.statusOnError`);
  for (const name of HEADER_LISTS) {
    if (http[name]?.includes("*")) yield error(`${at}.${name}`, 'cannot be "*": only the begin or end of a name can');
  }
}

/** A host or an address, or a host in a namespace: `namespace/host`. */
function* checkServiceName(service: string, at: string): Iterable<Problem> {
  const [first = "", host, ...more] = service.split("/");
  if (host === undefined) {
    if (isIP(service) === 0) yield* checkFqdn(service, at);
  } else if (more.length > 0) yield error(at, `must be a host, or namespace/host, not "${service}"`);
  else {
    yield* checkDnsLabel(first, at);
    yield* checkFqdn(host, at);
  }
}

function* checkStatus(status: string | undefined, at: string): Iterable<Problem> {
  if (status && !STATUS.test(status)) yield error(at, `must be a status of HTTP, not "${status}"`);
}
