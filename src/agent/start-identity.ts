/** The workload's certificate and the secrets around it: where they come from. */
import { existsSync } from "node:fs";
import { durationMs } from "#config/proxy-config/proxy-config.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { AgentContext } from "./agent-context.ts";
import type { ControlPlaneServer } from "./control-plane.ts";
import { pathIn } from "./place.ts";
import type { IdentityPlan } from "./plan-identity.ts";
import { caProvider, caProviderName } from "./sds/ca/ca-provider.ts";
import { FileSecrets } from "./sds/file-secrets.ts";
import type { EncodeOptions } from "./sds/messages.ts";
import { runOutputFiles } from "./sds/output-files.ts";
import type { SecretServiceInput } from "./sds/service.ts";
import { systemRootsFile } from "./sds/system-roots.ts";
import { TrustBundle } from "./sds/trust-bundle.ts";
import { WorkloadIdentity } from "./sds/workload-identity.ts";
import { workloadSecrets } from "./sds/workload-secrets.ts";
import { googlePlatform } from "./sts/google-platform.ts";
import { type FetchToken, tokenSource } from "./sts/token-source.ts";
import { TOKEN_FILE } from "./trust.ts";

export interface StartedIdentity {
  /** To be run by whoever knows when. Undefined when no CA is asked: the certificate is another authority's business. */
  readonly identity: WorkloadIdentity | undefined;
  /** Takes roots that the control plane adds while the agent runs. */
  readonly trustBundle: TrustBundle;
  /** The workload's token, for the control plane as for the CA. */
  readonly fetchToken: FetchToken;
  /** What Envoy is to be served. */
  readonly secrets: SecretServiceInput;
}

const REVOCATION_FILE = "/var/run/secrets/istio/crl/ca-crl.pem";

/** Finds out where the workload's certificate comes from. If from a foreign SDS server, there are only secrets from files. */
export async function startIdentity(
  context: AgentContext,
  { mounted, ca }: IdentityPlan,
  running: Promise<void>[],
): Promise<StartedIdentity> {
  const { config, place, log, metrics, done, servedByOthers } = context;
  const trustBundle = new TrustBundle();
  const tokens = { config: config.identity, file: pathIn(place, TOKEN_FILE), log, signal: done, running };
  const fetchToken = await tokenSource(tokens);
  const identity = ca && (await workloadIdentity(context, ca, fetchToken));
  const files = new FileSecrets({
    log: log.scope("cache"),
    metrics,
    debounceMs: config.identity.fileDebounceMs,
    systemRoots: systemRootsFile(),
    resolve: (path) => pathIn(place, path),
    mayRead: place.mayRead,
  });
  const own = workloadSecrets({ identity, files, mounted, trustBundle });
  if (config.identity.outputFolder !== "") {
    const folder = pathIn(place, config.identity.outputFolder);
    const output = { folder, mode: config.identity.outputMode, source: own, log: log.scope("cache") };
    running.push(runOutputFiles(output, done));
  }
  const sources = servedByOthers ? [files] : [own, files];
  return {
    identity,
    trustBundle,
    fetchToken,
    secrets: { sources, log: log.scope("sds"), metrics, encode: encodeOptions(context) },
  };
}

async function workloadIdentity(
  context: AgentContext,
  upstream: ControlPlaneServer,
  fetchToken: FetchToken,
): Promise<WorkloadIdentity> {
  const { config, log, metrics } = context;
  const { identity, podNamespace: namespace, serviceAccount } = config;
  log.info(`CA Endpoint ${upstream.address}, provider ${caProviderName(identity)}`);
  return new WorkloadIdentity({
    ...identity,
    identity: formatSpiffeId({ trustDomain: identity.trustDomain, namespace, serviceAccount }),
    sign: await caProvider({
      config: identity,
      upstream,
      fetchToken,
      clusterUrl: identity.google.clusterUrl || googlePlatform(context.node.metadata).clusterUrl,
      log,
      metrics,
    }),
    log: log.scope("cache"),
    metrics,
  });
}

function encodeOptions({ config, proxyConfig }: AgentContext): () => EncodeOptions {
  const { cryptomb, qat } = proxyConfig.privateKeyProvider ?? {};
  const provider = cryptomb ?? qat;
  const keyProvider: EncodeOptions["keyProvider"] = provider && {
    name: cryptomb === undefined ? "qat" : "cryptomb",
    // Istio passes the part below a second on.
    pollDelayNanos: Math.round((durationMs(provider.pollDelay) % 1000) * 1e6),
    fallback: provider.fallback ?? false,
  };
  return () => ({
    keyProvider,
    revocationFile: config.identity.revocationList && existsSync(REVOCATION_FILE) ? REVOCATION_FILE : undefined,
  });
}
