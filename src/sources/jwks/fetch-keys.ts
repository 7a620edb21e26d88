/** Fetches key sets that configuration names: limited in time, size and number of redirects, each of them checked. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isRecord } from "#lib/json/is-record.ts";
import { parseJson } from "#lib/json/parse-json.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { limitConnecting } from "#lib/net/connect-limit.ts";
import { FetchGuard } from "#lib/net/fetch-guard.ts";
import type { KeySetAddress } from "#model/key-set.ts";

/** From where keys are fetched, and how far servers are trusted. */
export interface FetchRules {
  /** PILOT_JWKS_ALLOW_LOCAL: local and private addresses may be asked. */
  readonly allowLocal: boolean;
  /** ALLOWED_CIDRS_IN_JWKS_URIS: ranges of private addresses that may be asked, as `10.0.0.0/8`. */
  readonly allowedRanges: readonly string[];
  /** BLOCKED_CIDRS_IN_JWKS_URIS: ranges of addresses that are not asked, as `10.0.0.0/8`. */
  readonly blockedRanges: readonly string[];
  /** JWKS_RESOLVER_INSECURE_SKIP_VERIFY: certificates of servers are not checked. */
  readonly insecure: boolean;
  /** Certificates in PEM that are trusted besides the usual ones. */
  readonly extraRoots: readonly string[];
  /** `cluster.local`: services of the cluster may have private addresses. */
  readonly clusterDomain: string;
}

/** One fetch. */
interface Fetch {
  /** It begins with TLS, so it must not go on in plain text: others could send keys of their own. */
  readonly needsTls: boolean;
  readonly rules: FetchRules;
  readonly guard: FetchGuard;
  readonly signal: AbortSignal;
}

/** Sets of keys are a few kilobytes. */
const MAX_BYTES = 1_048_576;
const MAX_REDIRECTS = 10;
/** Upper limit for `timeout` of a rule. */
const MAX_TIMEOUT_MS = 60_000;
/** Issuers have a handful. */
const MAX_KEYS = 1_000;

/** The key set at an address, as the server wrote it. */
export async function fetchKeySet(address: KeySetAddress, rules: FetchRules, signal: AbortSignal): Promise<string> {
  const timeoutMs = Math.min(address.timeoutMs, MAX_TIMEOUT_MS);
  const limited = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const fetch = fetchFrom(address.id, rules, limited);
  const url = address.discovers ? await discover(address.id, fetch) : address.id;
  const text = await getText(url, fetch);
  checkKeySet(text, url);
  return text;
}

/** Whatever text is at an address that configuration names, under the same rules. */
export function fetchText(url: string, rules: FetchRules, signal: AbortSignal): Promise<string> {
  return getText(url, fetchFrom(url, rules, signal));
}

async function discover(url: string, fetch: Fetch): Promise<string> {
  const answer = parse(await getText(url, fetch));
  const found = isRecord(answer) ? answer.jwks_uri : undefined;
  if (typeof found === "string") return found;
  throw unavailable(url, "the answer names no jwks_uri");
}

/** Every proxy gets the set, and reads each of its keys. */
function checkKeySet(text: string, url: string): void {
  const set = parse(text);
  if (!isRecord(set) || !Array.isArray(set.keys)) throw unavailable(url, "the answer is no JSON Web Key Set");
  if (set.keys.length > MAX_KEYS) throw unavailable(url, `the answer has more than ${MAX_KEYS} keys`);
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    // What is no JSON is no key set either, and is reported as such.
    return undefined;
  }
}

function fetchFrom(start: string, rules: FetchRules, signal: AbortSignal): Fetch {
  const url = urlOf(start);
  const needsTls = url.protocol === "https:" && !rules.insecure;
  return { rules, signal, needsTls, guard: new FetchGuard(url, { ...rules, refusal }) };
}

async function getText(start: string, fetch: Fetch): Promise<string> {
  let url = start;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await send(urlOf(url), fetch);
    const { statusCode: status = 0, headers } = response;
    if (status === 200) return readText(response, url);
    response.destroy();
    const { location } = headers;
    if (status < 300 || status >= 400 || location === undefined || !URL.canParse(location, url))
      throw unavailable(url, `status ${status}`);
    url = new URL(location, url).href;
  }
  throw unavailable(start, `stopped after ${MAX_REDIRECTS} redirects`);
}

function urlOf(text: string): URL {
  if (!URL.canParse(text)) throw unavailable(text, "it is no URL");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw unavailable(text, "it is neither http nor https");
  return url;
}

async function send(url: URL, { rules, guard, signal, needsTls }: Fetch): Promise<IncomingMessage> {
  const { insecure, extraRoots } = rules;
  if (needsTls && url.protocol === "http:") throw unavailable(url.href, "a server with TLS leads to it, in plain text");
  guard.check(url);
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      agent: false,
      signal,
      headers: { accept: "application/json" },
      rejectUnauthorized: !insecure,
      ...(extraRoots.length > 0 && { ca: [...extraRoots] }),
      lookup: guard.lookupFor(url),
    });
    limitConnecting(request);
    request.on("response", resolve);
    request.on("error", (cause) => {
      if (cause instanceof MeshError) reject(cause);
      else reject(unavailable(url.href, signal.aborted ? "no answer in time" : errorText(cause)));
    });
    request.end();
  });
}

async function readText(response: IncomingMessage, url: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response) {
      size += chunk.length;
      if (size > MAX_BYTES) throw unavailable(url, `the answer has more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
  } catch (cause) {
    response.destroy();
    throw cause instanceof MeshError ? cause : unavailable(url, `the answer broke off: ${errorText(cause)}`);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function unavailable(url: string, reason: string): MeshError {
  return new MeshError("KEYS_UNAVAILABLE", `cannot get "${url}": ${reason}`);
}

function refusal(host: string, reason: string): MeshError {
  return new MeshError(
    "KEYS_REFUSED",
    `"${host}" is ${reason}: ALLOWED_CIDRS_IN_JWKS_URIS allows private ranges, PILOT_JWKS_ALLOW_LOCAL local addresses too`,
  );
}
