import type { Logger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { ControlPlaneOptions, ControlPlaneServer } from "../../control-plane.ts";
import type { AgentMetrics } from "../../metrics.ts";
import type { FetchToken } from "../../sts/token-source.ts";
import type { IdentityConfig } from "../identity-config.ts";
import type { Sign } from "../sign.ts";
import type { CaClientInput } from "./ca-connection.ts";

export interface CaProviderInput {
  readonly config: IdentityConfig;
  /** How istiod's CA is reached; others share its roots and headers. */
  readonly upstream: ControlPlaneServer;
  /** The token of the workload. */
  readonly fetchToken: FetchToken;
  /** Issuer of the tokens of a GKE cluster. */
  readonly clusterUrl: string;
  readonly log: Logger;
  readonly metrics: AgentMetrics;
}

/** The name that decides: addresses of Google are never istiod's. */
export function caProviderName({ caProvider, caAddress }: Pick<IdentityConfig, "caProvider" | "caAddress">): string {
  return caAddress.includes("googleapis.com") ? "GoogleCA" : caProvider;
}

const PROVIDERS: readonly string[] = ["Citadel", "GoogleCA", "GoogleCAS"];

/** Throws when CA_PROVIDER names none: that is told before Envoy is started. */
export function checkCaProvider(config: Pick<IdentityConfig, "caProvider" | "caAddress">): void {
  const name = caProviderName(config);
  if (PROVIDERS.includes(name)) return;
  throw new MeshError(
    "CA_PROVIDER_UNKNOWN",
    `CA provider "${name}" not registered: choose ${PROVIDERS.join(", ")} or GkeWorkloadCertificate`,
  );
}

/** The client for CA_PROVIDER. Google's are loaded when they are asked for, istiod's when there is something to sign. */
export async function caProvider(input: CaProviderInput): Promise<Sign> {
  const { config, log, metrics } = input;
  checkCaProvider(config);
  const name = caProviderName(config);
  const client = (upstream: ControlPlaneOptions): CaClientInput => ({
    upstream,
    log: log.scope("ca"),
    retries: metrics.signRetries,
  });
  if (name === "Citadel") {
    const citadel = client({ ...input.upstream, fetchToken: input.fetchToken });
    return async (request, signal) => {
      const { citadelClient } = await import("./ca-client.ts");
      return citadelClient(citadel, config.certSigner)(request, signal);
    };
  }
  if (name === "GoogleCA") {
    const { googleCaClient } = await import("./google-ca-client.ts");
    return googleCaClient(client(await googleUpstream(input)), input.clusterUrl);
  }
  const { googleCasClient } = await import("./google-cas-client.ts");
  const upstream = { ...(await googleUpstream(input)), address: config.google.casEndpoint };
  return googleCasClient(client(upstream), config.caAddress);
}

/** Google knows the workload by a federated token, which its own one is exchanged for. */
async function googleUpstream({
  config,
  upstream,
  fetchToken,
  clusterUrl,
}: CaProviderInput): Promise<ControlPlaneOptions> {
  const { federatedToken } = await import("../../sts/federated-token.ts");
  const exchange = federatedToken({
    endpoint: config.google.secureTokenEndpoint,
    trustDomain: config.trustDomain,
    provider: config.credentialFetcher === "GoogleComputeEngine" ? config.credentialIdentityProvider : clusterUrl,
  });
  return {
    ...upstream,
    fetchToken: async () => {
      const token = await fetchToken();
      return token === "" ? "" : (await exchange({ subjectToken: token })).token;
    },
  };
}
