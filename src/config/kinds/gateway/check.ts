import { isIP } from "node:net";
import { checkDnsLabel, isPartialWildcard, wrongHost } from "../../checks/names.ts";
import { checkIpAddress, checkPort, checkUnixPath, UNIX_PREFIX } from "../../checks/network.ts";
import type { ConfigObject } from "../../schema/config-object.ts";
import { error, type Problem, warning } from "../../schema/problem.ts";
import { isHttp, isTls, PROTOCOL_NAMES, parseProtocol } from "../../terms/protocol.ts";
import { checkServerTls } from "./check-server-tls.ts";
import type { Gateway, GatewayServer } from "./schema.ts";

/** Marks a Gateway that was made from one of the Gateway API, for which other names and namespaces are usual. */
const SEMANTICS = "internal.istio.io/gateway-semantics";

/** Checks a Gateway. */
export function* checkGateway({ spec, metadata }: ConfigObject<Gateway>): Iterable<Problem> {
  const { servers = [] } = spec;
  const converted = metadata.annotations[SEMANTICS] === "gateway";
  if (!converted) yield* checkDnsLabel(metadata.name, "metadata.name");
  if (servers.length === 0) yield error("spec.servers", "needs at least one server");
  const names = new Set<string>();
  for (const [i, server] of servers.entries()) {
    const at = `spec.servers[${i}]`;
    yield* checkServer(server, at, converted);
    const { name } = server.port;
    if (names.has(name)) yield error(`${at}.port.name`, `is there twice: "${name}"`);
    names.add(name);
  }
}

function* checkServer(server: GatewayServer, at: string, converted: boolean): Iterable<Problem> {
  const { hosts, port, bind = "", tls } = server;
  if (hosts.length === 0) yield error(`${at}.hosts`, "needs at least one host");
  for (const [i, host] of hosts.entries())
    yield* checkServerHost(host, `${at}.hosts[${i}]`, converted ? ["*", ".", "~"] : ["*", "."]);
  yield* checkServerPort(server, at);
  if (bind !== "" && !bind.startsWith(UNIX_PREFIX)) yield* checkIpAddress(bind, `${at}.bind`);
  yield* checkServerTls(tls, `${at}.tls`);
  const protocol = parseProtocol(port.protocol);
  if (tls?.httpsRedirect === true && !isHttp(protocol)) {
    yield warning(`${at}.tls.httpsRedirect`, "has an effect on HTTP servers only");
  }
  if (isTls(protocol) && tls === undefined) yield error(`${at}.tls`, `is required for protocol ${port.protocol}`);
  else if (!isTls(protocol) && tls !== undefined && !(isHttp(protocol) && onlyRedirects(tls))) {
    yield error(`${at}.tls`, `cannot be set for protocol ${port.protocol}, apart from httpsRedirect for HTTP`);
  }
}

function* checkServerPort({ port, bind = "" }: GatewayServer, at: string): Iterable<Problem> {
  const { number, protocol, name, targetPort = 0 } = port;
  if (parseProtocol(protocol) === "Unsupported") {
    yield error(`${at}.port.protocol`, `must be one of ${PROTOCOL_NAMES.join(", ")}, not "${protocol}"`);
  }
  if (bind.startsWith(UNIX_PREFIX)) {
    yield* checkUnixPath(bind.slice(UNIX_PREFIX.length), `${at}.bind`);
    if (number !== 0) yield error(`${at}.port.number`, "must be 0 for a socket file");
  } else yield* checkPort(number, `${at}.port.number`);
  if (targetPort > 0) yield error(`${at}.port.targetPort`, "has no meaning for gateways");
  if (name === "") yield error(`${at}.port.name`, "is required");
}

/** `host`, or `namespace/host` with a namespace or one of the signs for some; short names are not allowed. */
function* checkServerHost(reference: string, at: string, namespaces: readonly string[]): Iterable<Problem> {
  const slash = reference.indexOf("/");
  if (slash >= 0) {
    const namespace = reference.slice(0, slash);
    if (!namespaces.includes(namespace)) yield* checkDnsLabel(namespace, at);
  }
  const host = reference.slice(slash + 1);
  if (host !== "*" && !host.includes(".")) yield error(at, `must be a complete host name, not "${host}"`);
  else if (isPartialWildcard(host)) yield error(at, `must have a wildcard as a whole label only, not "${host}"`);
  else {
    const wrong = isIP(host) === 0 ? wrongHost(host) : undefined;
    if (wrong !== undefined) yield error(at, wrong);
  }
}

function onlyRedirects(tls: NonNullable<GatewayServer["tls"]>): boolean {
  const { mode = "PASSTHROUGH", caCertificates = "", privateKey = "", serverCertificate = "" } = tls;
  return mode.endsWith("PASSTHROUGH") && `${caCertificates}${privateKey}${serverCertificate}` === "";
}
