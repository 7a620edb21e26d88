/**
 * Requests that only programs of this machine may send. A connection from loopback does not prove that: a browser sends what a web
 * page wants (also to a name that its owner points at 127.0.0.1, known as DNS rebinding), and a proxy passes on what came from elsewhere.
 */
import { isIP } from "node:net";

/** Headers by lower-case name. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Headers that proxies add. */
const PROXY_HEADERS = /^(?:x-envoy-|x-forwarded-|forwarded$|via$)/;

/** Why a request was not made by a program of this machine; undefined when nothing speaks against it. */
export function localRequestProblem(headers: RequestHeaders): string | undefined {
  const host = single(headers.host);
  // No browser leaves the header out.
  if (host !== undefined && !isLocalHost(host)) return `the Host header must be an address or localhost, not "${host}"`;
  const origin = single(headers.origin);
  if (origin !== undefined && (host === undefined || !isSameOrigin(origin, host)))
    return `a page of "${origin}" may not send requests here`;
  const proxy = Object.keys(headers).find((name) => PROXY_HEADERS.test(name));
  return proxy === undefined ? undefined : `the header ${proxy} shows that a proxy passed the request on`;
}

/** Several values are none of a legitimate request: joined, they match nothing. */
function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : value?.join(", ");
}

function isLocalHost(host: string): boolean {
  const name = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec(host);
  if (name === null) return false;
  const [, bracketed, plain = ""] = name;
  return bracketed === undefined ? isIP(plain) === 4 || plain.toLowerCase() === "localhost" : isIP(bracketed) === 6;
}

function isSameOrigin(origin: string, host: string): boolean {
  return URL.canParse(origin) && new URL(origin).host === host.toLowerCase();
}
