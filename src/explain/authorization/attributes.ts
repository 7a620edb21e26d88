/** What each field of a rule looks at, and whether a request has one of the values it names. */
import ipaddr from "ipaddr.js";
import {
  accountPattern,
  claimPath,
  isPathTemplate,
  type Meaning,
  namespacePattern,
  parseConditionKey,
  SPIFFE,
} from "#config/kinds/authorization-policy/authorization-values.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { parseRequestPrincipal, type TextPattern } from "#model/identity/request-principal.ts";
import { withAliases } from "#model/identity/trust-domain.ts";
import type { Claims, HttpRequest, Request } from "./request.ts";
import { fitsTemplate, fitsText, isWhole } from "./text.ts";

/** An attribute of requests. Those of HTTP alone cannot be told from a connection. */
export type Attribute =
  | {
      readonly httpOnly: true;
      readonly fits: (value: string, request: HttpRequest, meaning: Meaning) => boolean;
      /** As people read it. */
      readonly shown: (request: HttpRequest) => string;
    }
  | {
      readonly httpOnly: false;
      readonly fits: (value: string, request: Request, meaning: Meaning) => boolean;
      readonly shown: (request: Request) => string;
    };

const NO_PEER = "none (no mutual TLS)";
const NO_TOKEN = "none (no token)";

const principals: Attribute = {
  httpOnly: false,
  fits: (value, { peer = "" }, { trustDomains }) =>
    withAliases([value], trustDomains).some((one) => fitsPrincipal(one, peer)),
  shown: ({ peer }) => peer?.replace(SPIFFE, "") ?? NO_PEER,
};
const namespaces: Attribute = {
  httpOnly: false,
  fits: (value, { peer = "" }) => isWhole(namespacePattern(value), peer),
  shown: ({ peer }) => (peer === undefined ? NO_PEER : (/\/ns\/([^/]+)\//.exec(peer)?.[1] ?? peer)),
};
const serviceAccounts: Attribute = {
  httpOnly: false,
  fits: (value, { peer = "" }, { namespace }) => isWhole(accountPattern(value, namespace), peer),
  shown: ({ peer }) => peer?.replace(/^.*\/ns\/([^/]+)\/sa\//, "$1/") ?? NO_PEER,
};
const sourceIps = address(({ sourceIp }) => sourceIp);
const remoteIps = address(({ remoteIp }) => remoteIp);
const ports: Attribute = {
  httpOnly: false,
  fits: (value, { port }) => Number(value) === port,
  shown: ({ port }) => String(port),
};
const requestPrincipals: Attribute = {
  httpOnly: true,
  fits: (value, { claims }) => claims !== undefined && fitsRequestPrincipal(value, claims),
  shown: ({ claims }) => (claims === undefined ? NO_TOKEN : `${String(claims.iss)}/${String(claims.sub)}`),
};

/** Fields of `source` and `operation`, without `not`. */
export const FIELDS: ReadonlyMap<string, Attribute> = new Map([
  ["principals", principals],
  ["namespaces", namespaces],
  ["serviceAccounts", serviceAccounts],
  ["requestPrincipals", requestPrincipals],
  ["ipBlocks", sourceIps],
  ["remoteIpBlocks", remoteIps],
  [
    "hosts",
    http(
      ({ host }) => host,
      (value, host) => fitsHeader(value, [host], true),
    ),
  ],
  [
    "methods",
    http(
      ({ method }) => method,
      (value, method) => fitsHeader(value, [method]),
    ),
  ],
  ["paths", http(({ path }) => path.replace(/[?#].*$/s, ""), fitsPath)],
  ["ports", ports],
]);

const KEYS: ReadonlyMap<string, Attribute> = new Map([
  ["source.ip", sourceIps],
  ["remote.ip", remoteIps],
  ["source.namespace", namespaces],
  ["source.principal", principals],
  ["source.serviceAccount", serviceAccounts],
  ["request.auth.principal", requestPrincipals],
  ["request.auth.audiences", claim(["aud"])],
  ["request.auth.presenter", claim(["azp"])],
  ["destination.ip", address(({ destinationIp }) => destinationIp)],
  ["destination.port", ports],
  [
    "connection.sni",
    { httpOnly: false, fits: (value, { sni }) => fitsText(value, sni, true), shown: ({ sni }) => sni || "none" },
  ],
]);

/** The attribute that a condition names; undefined when there is none of that name. */
export function attributeOfKey(key: string): Attribute | undefined {
  const plain = KEYS.get(key);
  if (plain !== undefined) return plain;
  const { name, part } = parseConditionKey(key);
  if (name === "request.headers") return header(part);
  if (name === "request.auth.claims") return claim(claimPath(part));
  // Nothing is known of what other filters say of a request.
  return name.startsWith("experimental.envoy.")
    ? { httpOnly: false, fits: () => false, shown: () => "unknown" }
    : undefined;
}

function http(of: (request: HttpRequest) => string, fits: (value: string, text: string) => boolean): Attribute {
  return { httpOnly: true, fits: (value, request) => fits(value, of(request)), shown: (request) => of(request) };
}

function address(of: (request: Request) => string): Attribute {
  return { httpOnly: false, fits: (range, request) => isInRange(of(request), range), shown: of };
}

function header(name: string): Attribute {
  const of = ({ headers, host, method, path }: HttpRequest): readonly string[] => {
    const pseudo: Readonly<Record<string, string>> = { ":authority": host, host, ":method": method, ":path": path };
    const lower = name.toLowerCase();
    const known = pseudo[lower];
    return known === undefined ? (headers[lower] ?? []) : [known];
  };
  return {
    httpOnly: true,
    fits: (value, request) => fitsHeader(value, of(request)),
    shown: (request) => (of(request).length === 0 ? "none" : of(request).join(",")),
  };
}

/** Of a header that comes more than once each value counts on its own. `*` is any value, also an empty one. */
function fitsHeader(pattern: string, values: readonly string[], ignoreCase = false): boolean {
  return values.some((value) => pattern === "*" || fitsText(pattern, value, ignoreCase));
}

function fitsPath(pattern: string, path: string): boolean {
  return isPathTemplate(pattern) ? fitsTemplate(pattern, path) : fitsText(pattern, path);
}

function fitsPrincipal(pattern: string, peer: string): boolean {
  if (pattern === "*") return peer !== "";
  if (pattern.startsWith("*")) return peer.startsWith(SPIFFE) && peer.slice(SPIFFE.length).endsWith(pattern.slice(1));
  return fitsText(`${SPIFFE}${pattern}`, peer);
}

function fitsRequestPrincipal(value: string, { iss, sub }: Claims): boolean {
  const { issuer, subject } = parseRequestPrincipal(value);
  return fitsPattern(issuer, iss) && fitsPattern(subject, sub);
}

function fitsPattern(pattern: TextPattern, text: unknown): boolean {
  if (typeof text !== "string") return false;
  switch (pattern.kind) {
    case "any":
      return text !== "";
    case "exact":
      return text === pattern.text;
    case "prefix":
      return text.startsWith(pattern.text);
    case "suffix":
      return text.endsWith(pattern.text);
  }
}

function claim(path: readonly string[]): Attribute {
  const of = ({ claims }: HttpRequest): unknown =>
    path.reduce<unknown>(
      (value, name) => (isRecord(value) && Object.hasOwn(value, name) ? value[name] : undefined),
      claims,
    );
  return {
    httpOnly: true,
    fits: (value, request) => {
      const found = of(request);
      return (Array.isArray(found) ? found : [found]).some((one) => typeof one === "string" && fitsText(value, one));
    },
    shown: (request) => (request.claims === undefined ? NO_TOKEN : (JSON.stringify(of(request)) ?? "none")),
  };
}

/** Whether an address is in a range, `10.0.0.0/8`, or is the one named. Addresses of one kind are in no range of the other. */
function isInRange(text: string, range: string): boolean {
  const [net = "", prefix] = range.split("/");
  if (!ipaddr.isValid(text) || !ipaddr.isValid(net)) return false;
  const [one, of] = [ipaddr.parse(text), ipaddr.parse(net)];
  const bits = prefix === undefined ? (of.kind() === "ipv4" ? 32 : 128) : Number(prefix);
  return one.kind() === of.kind() && one.match(of, bits);
}
