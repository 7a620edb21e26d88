/** The workload's certificate and the secrets around it: where they come from, and the socket that Envoy gets them on. */
import { existsSync } from "node:fs";
import { durationMs } from "#config/proxy-config.ts";
import { sleep } from "#lib/async/sleep.ts";
import { errorText } from "#lib/mesh-error.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { AgentContext } from "./agent-context.ts";
import { pathIn } from "./place.ts";
import { caProvider, caProviderName } from "./sds/ca-provider.ts";
import { certificatePlan } from "./sds/certificate-plan.ts";
import { ownSocketPath } from "./sds/existing-socket.ts";
import { FileSecrets } from "./sds/file-secrets.ts";
import { checkKeyOptions } from "./sds/key.ts";
import type { EncodeOptions } from "./sds/messages.ts";
import { runOutputFiles } from "./sds/output-files.ts";
import { type SecretServiceInput, secretDiscoveryService } from "./sds/service.ts";
import { systemRootsFile } from "./sds/system-roots.ts";
import { TrustBundle } from "./sds/trust-bundle.ts";
import { WorkloadIdentity } from "./sds/workload-identity.ts";
import { workloadSecrets } from "./sds/workload-secrets.ts";
import { googlePlatform } from "./sts/google-platform.ts";
import { tokenSource } from "./sts/token-source.ts";
import { caOptions, TOKEN_FILE } from "./trust.ts";
import { serveUnix } from "./unix-server.ts";

export interface StartedIdentity {
  /** Undefined when no CA is asked: the certificate is another authority's business. */
  readonly identity: WorkloadIdentity | undefined;
  /** Takes roots that the control plane adds while the agent runs. */
  readonly trustBundle: TrustBundle;
}

const REVOCATION_FILE = "/var/run/secrets/istio/crl/ca-crl.pem";
const SERVE_ATTEMPTS = 5;
const FIRST_PAUSE_MS = 1_000;

/** Serves the workload's certificate, unless a foreign SDS server does: then only secrets from files. */
export async function startIdentity(context: AgentContext, running: Promise<void>[]): Promise<StartedIdentity> {
  const { config, place, log, metrics, done, servedByOthers } = context;
  const { mounted, askCa } = certificatePlan({ config: config.identity, place, servedByOthers, log });
  const trustBundle = new TrustBundle();
  const identity = askCa ? await workloadIdentity(context, running) : undefined;
  const files = new FileSecrets({
    log: log.scope("cache"),
    metrics,
    debounceMs: config.identity.fileDebounceMs,
    systemRoots: systemRootsFile(),
    resolve: (path) => pathIn(place, path),
  });
  const own = workloadSecrets({ identity, files, mounted, trustBundle });
  if (config.identity.outputFolder !== "") {
    const folder = pathIn(place, config.identity.outputFolder);
    const output = { folder, mode: config.identity.outputMode, source: own, log: log.scope("cache") };
    running.push(runOutputFiles(output, done));
  }
  if (identity !== undefined) running.push(identity.run(done));
  const sources = servedByOthers ? [files] : [own, files];
  // A workload that speaks xDS itself reads its certificate from OUTPUT_CERTS.
  if (!config.envoy.disabled)
    await serveSecrets(context, { sources, log: log.scope("sds"), encode: encodeOptions(context) });
  return { identity, trustBundle };
}

async function workloadIdentity(context: AgentContext, running: Promise<void>[]): Promise<WorkloadIdentity> {
  const { config, place, log, metrics, done } = context;
  const { identity, podNamespace: namespace, serviceAccount } = config;
  checkKeyOptions(identity.key);
  const file = pathIn(place, TOKEN_FILE);
  const fetchToken = await tokenSource({ config: identity, file, log, signal: done, running });
  const upstream = await caOptions(context);
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

/** Opens the socket; a path that cannot be had yet is tried again with growing pauses. */
async function serveSecrets(context: AgentContext, input: SecretServiceInput): Promise<void> {
  const { place, stop, done, servedByOthers: onlyFiles } = context;
  const path = ownSocketPath(place, onlyFiles);
  input.log.info("Starting SDS grpc server");
  for (let attempt = 1; !stop.aborted; attempt++) {
    try {
      await serveUnix(path, [secretDiscoveryService(input)], done);
      const what = onlyFiles ? "file certificates only" : "workload certificates";
      input.log.info(`SDS server for ${what} started, listening on "${path}"`);
      return;
    } catch (thrown) {
      input.log.error(`SDS grpc server for workload proxies failed to set up UDS: ${errorText(thrown)}`);
      if (attempt >= SERVE_ATTEMPTS) {
        input.log.warn("SDS grpc server could not be started");
        throw thrown;
      }
      await sleep(FIRST_PAUSE_MS * 2 ** (attempt - 1), stop);
    }
  }
}
