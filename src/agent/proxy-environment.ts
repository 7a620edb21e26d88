import type { EnvValues } from "#lib/env-table.ts";
import type { ProxyEnvironment } from "#lib/net/environment-proxy.ts";
import type { AGENT_ENVIRONMENT } from "./agent-environment.ts";

/** What names the proxies through which servers are reached. */
export function proxyEnvironment(values: EnvValues<typeof AGENT_ENVIRONMENT>): ProxyEnvironment {
  const { HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy, NO_PROXY, no_proxy } = values;
  return { HTTPS_PROXY, https_proxy, HTTP_PROXY, http_proxy, NO_PROXY, no_proxy };
}
