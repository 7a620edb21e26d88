/** Fetches key sets that configuration names: limited in time, size and number of redirects, each of them checked. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { BlockList } from "node:net";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { limitConnecting } from "#lib/net/connect-limit.ts";
import { bareHost, checkedLookup, isIn, isLocalAddress, isLocalUrl } from "#lib/net/local-addresses.ts";
import type { KeySetAddress } from "#model/key-set.ts";

/** From where keys are fetched, and how far servers are trusted. */
export interface FetchRules {
  /** PILOT_JWKS_ALLOW_LOCAL: this machine, its link and the cloud's metadata server may be asked. */
  readonly allowLocal: boolean;
  /** BLOCKED_CIDRS_IN_JWKS_URIS: ranges of addresses that are not asked, as `10.0.0.0/8`. */
  readonly blockedRanges: readonly string[];
  /** JWKS_RESOLVER_INSECURE_SKIP_VERIFY: certificates of servers are not checked. */
  readonly insecure: boolean;
  /** Certificates in PEM that are trusted besides the usual ones. */
  readonly extraRoots: readonly string[];
}

/** Sets of keys are a few kilobytes. */
const MAX_BYTES = 1_048_576;
const MAX_REDIRECTS = 10;

/** The key set at an address, as the server wrote it. */
export async function fetchKeySet(address: KeySetAddress, rules: FetchRules, signal: AbortSignal): Promise<string> {
  const limited = AbortSignal.any([signal, AbortSignal.timeout(address.timeoutMs)]);
  const guard = guardOf(rules);
  const url = address.discovers ? await discover(address.id, guard, limited) : address.id;
  const text = await getText(url, guard, limited);
  if (!isKeySet(parse(text))) throw unavailable(url, "the answer is no JSON Web Key Set");
  return text;
}

/** Whatever text is at an address that configuration names, under the same rules. */
export function fetchText(url: string, rules: FetchRules, signal: AbortSignal): Promise<string> {
  return getText(url, guardOf(rules), signal);
}

async function discover(url: string, guard: Guard, signal: AbortSignal): Promise<string> {
  const answer = parse(await getText(url, guard, signal));
  const found = typeof answer === "object" && answer !== null && "jwks_uri" in answer ? answer.jwks_uri : undefined;
  if (typeof found === "string") return found;
  throw unavailable(url, "the answer names no jwks_uri");
}

function isKeySet(value: unknown): boolean {
  return typeof value === "object" && value !== null && "keys" in value && Array.isArray(value.keys);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // What is no JSON is no key set either, and is reported as such.
    return undefined;
  }
}

interface Guard extends FetchRules {
  readonly isRefused: (address: string) => boolean;
}

function guardOf(rules: FetchRules): Guard {
  const blocked = new BlockList();
  for (const range of rules.blockedRanges) {
    const [net = "", prefix = ""] = range.split("/");
    blocked.addSubnet(net, Number(prefix), net.includes(":") ? "ipv6" : "ipv4");
  }
  const isRefused = (address: string) => (!rules.allowLocal && isLocalAddress(address)) || isIn(blocked, address);
  return { ...rules, isRefused };
}

async function getText(start: string, guard: Guard, signal: AbortSignal): Promise<string> {
  let url = start;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await send(allowedUrl(url, guard), guard, signal);
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

function allowedUrl(text: string, guard: Guard): URL {
  if (!URL.canParse(text)) throw unavailable(text, "it is no URL");
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw unavailable(text, "it is neither http nor https");
  if ((!guard.allowLocal && isLocalUrl(url)) || guard.isRefused(bareHost(url))) throw refusal(bareHost(url));
  return url;
}

function send(url: URL, guard: Guard, signal: AbortSignal): Promise<IncomingMessage> {
  const { insecure, extraRoots, isRefused } = guard;
  return new Promise((resolve, reject) => {
    const request = (url.protocol === "https:" ? httpsRequest : httpRequest)(url, {
      agent: false,
      signal,
      headers: { accept: "application/json" },
      rejectUnauthorized: !insecure,
      ...(extraRoots.length > 0 && { ca: [...extraRoots] }),
      lookup: checkedLookup(isRefused, refusal),
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

function refusal(host: string): MeshError {
  return new MeshError(
    "KEYS_REFUSED",
    `"${host}" is this machine, its link, a metadata server or in BLOCKED_CIDRS_IN_JWKS_URIS: PILOT_JWKS_ALLOW_LOCAL allows the former`,
  );
}
