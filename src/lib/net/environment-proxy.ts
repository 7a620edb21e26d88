/** What connects us to servers, as `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say: read as Go programs read them. */
import { BlockList, isIP, isIPv6 } from "node:net";
import { MeshError } from "../mesh-error.ts";

/** `HTTPS_PROXY` and its like, by their names; others do not count. */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>;

/** The URL of the proxy for a server; undefined when it is called directly, as this machine itself always is. */
export function environmentProxy(server: string, environment: ProxyEnvironment): string | undefined {
  const url = new URL(server);
  const name = url.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY";
  const value = variable(environment, name);
  if (value === "" || isExempt(url, variable(environment, "NO_PROXY"))) return undefined;
  const proxy = value.includes("://") ? value : `http://${value}`;
  if (URL.canParse(proxy) && ["http:", "https:"].includes(new URL(proxy).protocol)) return proxy;
  throw new MeshError(
    "PROXY_INVALID",
    `${name} is no URL of http:// or https://: unset it, or name ${server} in NO_PROXY`,
  );
}

/** Names in small letters count too, after those in capitals. */
function variable(environment: ProxyEnvironment, name: string): string {
  return (environment[name] || environment[name.toLowerCase()] || "").trim();
}

function isExempt({ hostname, port, protocol }: URL, exceptions: string): boolean {
  const host = hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  const isHere = host === "localhost" || isInRange(host, "127.0.0.0/8") || isInRange(host, "::1/128");
  const called = { host, port: port || (protocol === "https:" ? "443" : "80") };
  return isHere || exceptions.split(",").some((exception) => excludes(exception.trim().toLowerCase(), called));
}

/** `*`, a range, or an address or name with or without a port. A name stands for those below it; with a dot, for them alone. */
function excludes(exception: string, called: { readonly host: string; readonly port: string }): boolean {
  if (exception === "" || exception === "*") return exception === "*";
  if (exception.includes("/")) return isInRange(called.host, exception);
  const [, bracketed, plain = "", port] = /^(?:\[(.*)\]|(.*?))(?::(\d+))?$/.exec(exception) ?? [];
  const isAddress = isIP(exception) !== 0;
  const host = isAddress ? exception : (bracketed ?? plain);
  if (!isAddress && port !== undefined && port !== called.port) return false;
  if (isIP(host) !== 0) return isInRange(called.host, `${host}/${isIPv6(host) ? 128 : 32}`);
  const name = host.replace(/^\*(?=\.)/, "");
  return name.startsWith(".") ? called.host.endsWith(name) : called.host === name || called.host.endsWith(`.${name}`);
}

function isInRange(host: string, range: string): boolean {
  const [net = "", prefix = ""] = range.split("/");
  const family = (address: string) => (isIPv6(address) ? "ipv6" : "ipv4");
  const most = isIPv6(net) ? 128 : 32;
  if (isIP(host) === 0 || isIP(net) === 0 || !/^\d+$/.test(prefix) || Number(prefix) > most) return false;
  const list = new BlockList();
  list.addSubnet(net, Number(prefix), family(net));
  return list.check(host, family(host));
}
