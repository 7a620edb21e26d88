import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { AgentContext } from "./agent-context.ts";
import { WORKLOAD_SOCKET_FOLDER } from "./bootstrap/clusters.ts";
import { pathIn } from "./place.ts";
import { caClient } from "./sds/ca-client.ts";
import { fileSecrets } from "./sds/file-secrets.ts";
import { workloadSecrets } from "./sds/secret-source.ts";
import { secretDiscoveryService } from "./sds/service.ts";
import { WorkloadIdentity } from "./sds/workload-identity.ts";
import { caOptions } from "./trust.ts";
import { isServed, serveUnix } from "./unix-server.ts";

const OWN_SOCKET_FILE = "socket";

/** Serves the workload's certificate, unless a foreign SDS server does: then there is none to give. */
export async function startIdentity(
  context: AgentContext,
  running: Promise<void>[],
): Promise<WorkloadIdentity | undefined> {
  const { config, place, log, metrics, done } = context;
  const { socketFile, trustDomain } = config.identity;
  if (socketFile !== basename(socketFile)) {
    throw new MeshError(
      "SDS_SOCKET_INVALID",
      `WORKLOAD_IDENTITY_SOCKET_FILE must be a file name, not the path "${socketFile}"`,
    );
  }
  const path = pathIn(place, join(WORKLOAD_SOCKET_FOLDER, socketFile));
  if (await isServed(path)) {
    log.info(`Existing workload SDS socket found at ${path}: the workload's certificate comes from there`);
    return undefined;
  }
  if (socketFile !== OWN_SOCKET_FILE)
    throw new MeshError("SDS_SOCKET_INVALID", `There is no SDS server on socket ${path}`);
  const upstream = caOptions(context);
  const identity = new WorkloadIdentity({
    ...config.identity,
    identity: `spiffe://${trustDomain}/ns/${config.podNamespace}/sa/${config.serviceAccount}`,
    sign: caClient(upstream, log.scope("citadelclient")),
    log: log.scope("cache"),
    metrics,
  });
  log.info(`CA Endpoint ${upstream.address}, provider Citadel`);
  writeFilesOf(identity, context);
  running.push(identity.run(done));
  const sources = [workloadSecrets(identity), fileSecrets(log.scope("cache"))];
  await serveUnix(path, [secretDiscoveryService(sources, log.scope("sds"))], done);
  log.scope("sds").info(`SDS server for workload certificates started, listening on "${path}"`);
  return identity;
}

/** For applications that read certificates from files (OUTPUT_CERTS). */
function writeFilesOf(identity: WorkloadIdentity, { config, log, place }: AgentContext): void {
  const folder = pathIn(place, config.identity.outputFolder);
  if (folder === "") return;
  identity.subscribe(({ certificate: { chain, privateKey, roots } }) => {
    const write = (file: string, text: string) => writeFile(join(folder, file), text, { mode: 0o600 });
    mkdir(folder, { recursive: true, mode: 0o700 })
      .then(() =>
        Promise.all([write("cert-chain.pem", chain), write("key.pem", privateKey), write("root-cert.pem", roots)]),
      )
      .catch((thrown: unknown) => log.error(`Cannot write certificates to ${folder}: ${errorText(thrown)}`));
  });
}
