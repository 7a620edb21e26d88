/** Redirects as the HTTP client of Go follows them: all of Istio's agent asks through it. */
import { MeshError } from "#lib/mesh-error.ts";

/** Other answers of that kind say where else to look, not to go there. */
const FOLLOWED: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** With these what was asked is asked again; with the others a page is. */
const SAME_METHOD: ReadonlySet<number> = new Set([307, 308]);
const MAX_REQUESTS = 10;

/** An answer that may send whoever asked elsewhere. */
export interface Redirecting {
  readonly status: number;
  readonly location: string | undefined;
  /** Lets go of an answer whose content nobody reads. */
  readonly close: () => void;
}

/** Where an answer sent whoever asked. */
export interface Redirect {
  readonly url: URL;
  /** Who sent us; undefined where that must not be told to those who read along. */
  readonly referer: string | undefined;
  /** No answer so far named a host: whoever is asked still goes by the name of the first request. */
  readonly sameName: boolean;
  /** What was asked is asked again, be it no GET. */
  readonly sameMethod: boolean;
}

export interface Following<A> {
  /** Asks, first without a redirect. */
  readonly ask: (redirect: Redirect | undefined) => Promise<A>;
  /** Everywhere unless given. An answer that sends elsewhere is then the last. */
  readonly mayFollow?: (url: URL) => boolean;
}

/** The last answer to a request for `start`. Rejects when there is none after ten, or an answer, or `start`, leads nowhere. */
export async function followRedirects<A extends Redirecting>(start: URL, following: Following<A>): Promise<A> {
  const { ask, mayFollow = () => true } = following;
  assertHttp(start);
  let from = start;
  let redirect: Redirect | undefined;
  for (let requests = 1; ; requests++) {
    const answer = await ask(redirect);
    const { status, location = "" } = answer;
    if (!FOLLOWED.has(status) || location === "") return answer;
    const url = URL.parse(location, from.href);
    if (url !== null && !mayFollow(url)) return answer;
    answer.close();
    if (url === null) throw new MeshError("HTTP_FAILED", `failed to parse Location header "${location}"`);
    assertHttp(url);
    if (requests === MAX_REQUESTS) throw new MeshError("HTTP_FAILED", `stopped after ${MAX_REQUESTS} redirects`);
    redirect = {
      url,
      referer: from.protocol === "https:" && url.protocol === "http:" ? undefined : from.href,
      sameName: redirect?.sameName !== false && !URL.canParse(location),
      sameMethod: SAME_METHOD.has(status),
    };
    from = url;
  }
}

/** Whatever is behind another protocol would be asked by HTTP all the same. */
function assertHttp({ protocol }: URL): void {
  if (protocol !== "http:" && protocol !== "https:")
    throw new MeshError("HTTP_FAILED", `unsupported protocol "${protocol}"`);
}

/** What a request needs to know of a URL. */
export function aimOf({ protocol, hostname, port, pathname, search }: URL): Aim {
  const https = protocol === "https:";
  return {
    https,
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port || (https ? 443 : 80)),
    path: pathname + search,
  };
}

/** Where a request goes. */
export interface Aim {
  readonly https: boolean;
  /** An address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
}
