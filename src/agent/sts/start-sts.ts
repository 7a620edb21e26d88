import { MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "../agent-context.ts";
import { GoogleExchange, type TokenStatus } from "./google-exchange.ts";
import { googlePlatform } from "./google-platform.ts";
import { serveSts, type TokenManager } from "./server.ts";

const GOOGLE_PLUGIN = "GoogleTokenExchange";

/**
 * Opens `--stsPort`, and gives the way to ask what it got. Rejects when the port or the plugin cannot be had: that is told before Envoy is started. Loaded only
 * where it is asked for.
 */
export async function startSts(context: AgentContext): Promise<() => readonly TokenStatus[]> {
  const { flags, localhost, log, done } = context;
  const manager = tokenManager(context);
  await serveSts({ host: localhost, port: flags.stsPort, manager, log: log.scope("stsserver") }, done);
  return () => manager.status();
}

/** What `--tokenManagerPlugin` names; Google's where it is left out. */
function tokenManager({ flags, config, node }: AgentContext): TokenManager {
  const plugin = flags.tokenManagerPlugin || GOOGLE_PLUGIN;
  if (plugin !== GOOGLE_PLUGIN)
    throw new MeshError(
      "STS_PLUGIN_UNKNOWN",
      `--tokenManagerPlugin: there is no plugin "${plugin}": choose ${GOOGLE_PLUGIN}`,
    );
  const { google, trustDomain, credentialFetcher, credentialIdentityProvider } = config.identity;
  const platform = googlePlatform(node.metadata);
  const { projectNumber } = platform;
  if (projectNumber === "" && google.accessTokenEndpoint.includes("%s")) return new NoPlugin();
  return new GoogleExchange({
    ...google,
    projectNumber,
    trustDomain,
    provider:
      credentialFetcher === "GoogleComputeEngine"
        ? credentialIdentityProvider
        : google.clusterUrl || platform.clusterUrl,
  });
}

/** Away from Google Cloud there is no project whose tokens could be given. */
class NoPlugin implements TokenManager {
  exchange(): Promise<never> {
    return Promise.reject(
      new MeshError("TOKEN_SERVER_FAILED", "no plugin is found: this is no project of Google Cloud"),
    );
  }

  status(): readonly [] {
    return [];
  }
}
