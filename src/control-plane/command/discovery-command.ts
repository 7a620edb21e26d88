/** `pilot-discovery discovery`: reads flags and environment, runs the control plane, follows signals. */
import { Command } from "commander";
import { collectHeap } from "#lib/collect-heap.ts";
import { VERSION_TEXT } from "#lib/command/version-command.ts";
import type { Env } from "#lib/env/env-table.ts";
import type { Logger, RootLogger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { loggerOf } from "../logger.ts";
import { flagDefaults, parseDiscoveryConfig } from "../settings/config.ts";
import { addFlags, describeFlags, flagsOf, ineffectiveFlags, type ParsedFlags } from "../settings/flags.ts";

/** Flags or environment are wrong. */
const EXIT_USAGE = 2;
/** A part could not start, or failed. */
const EXIT_FAILURE = 1;

const EXAMPLES = `
Examples:
  # Serve the configuration in a folder, without Kubernetes
  pilot-discovery discovery --registries= --configDir ./config --meshConfig ./mesh.yaml

  # Serve the cluster of a kubeconfig
  pilot-discovery discovery --kubeconfig ~/.kube/config

  # Several folders, no plain text, debug pages on loopback only
  pilot-discovery discovery --registries= --configDir ./services --configDir ./routes --grpcAddr= --httpAddr=127.0.0.1:8080

  # Believe tokens of an issuer and keep the mesh's root in a folder
  JWT_RULE='{"issuer":"https://issuer","jwks_uri":"https://issuer/keys","audiences":["istio-ca"]}' ROOT_CA_DIR=/var/lib/mesh/ca \\
    pilot-discovery discovery --registries= --configDir ./config

Environment:
  JWT_RULE                             issuer, jwks or jwks_uri, and audiences of tokens that callers may show
  ROOT_CA_DIR                          ca-key.pem, ca-cert.pem, cert-chain.pem, root-cert.pem (or tls.key, tls.crt, ca.crt); made when empty (default ./etc/cacerts)
  DEFAULT_WORKLOAD_CERT_TTL            lifetime of certificates when none is asked for (default 24h)
  MAX_WORKLOAD_CERT_TTL                longest lifetime of certificates (default 2160h)
  CITADEL_SELF_SIGNED_CA_CERT_TTL      lifetime of a new root (default 87600h)
  CITADEL_SELF_SIGNED_CA_RSA_KEY_SIZE  makes the key of a new root RSA with so many bits (default: ECDSA P-256)
  CA_KEY_PASSPHRASE_FILE               its first line is the passphrase of the private keys of the CA
  ENABLE_CA_SERVER                     false: no certificates are issued
  ENABLE_DEBUG_ON_HTTP                 false: no /debug
  PILOT_ENABLE_XDS_IDENTITY_CHECK      false: proxies may claim another namespace and account than their caller proved
  PILOT_MAX_REQUESTS_PER_SECOND        new xDS streams a second; the others wait for up to a second (default 0: any number)
  ISTIOD_CUSTOM_HOST                   further names of the control plane's certificate, separated by commas
  POD_NAMESPACE, CLUSTER_ID, REVISION  where this control plane runs
`;

/** The command. The control plane is loaded when it runs. */
export function discoveryCommand(env: Env, commandLine: readonly string[]): Command {
  const defaults = flagDefaults(env);
  const command = new Command("discovery")
    .description("Runs the control plane until SIGTERM.")
    .allowUnknownOption()
    .allowExcessArguments()
    .addHelpText("after", EXAMPLES);
  addFlags(command, defaults);
  return command.action(async () => {
    process.exitCode = await runDiscovery({
      flags: flagsOf(command, defaults),
      others: command.args,
      env,
      commandLine,
    });
  });
}

interface DiscoveryRun {
  readonly flags: ParsedFlags;
  /** Arguments and unknown flags. */
  readonly others: readonly string[];
  readonly env: Env;
  readonly commandLine: readonly string[];
}

async function runDiscovery({ flags, others, env, commandLine }: DiscoveryRun): Promise<number> {
  const { config, problems, warnings } = parseDiscoveryConfig(flags, env, commandLine);
  const [argument] = others;
  const wrong =
    argument?.startsWith("-") === false ? [`discovery takes no argument "${argument}"`, ...problems] : problems;
  if (wrong.length > 0) {
    for (const problem of wrong) process.stderr.write(`pilot-discovery: ${problem}\n`);
    return EXIT_USAGE;
  }
  let log: RootLogger | undefined;
  try {
    log = loggerOf(config.log);
    // Before the control plane is loaded, which takes the longest part of a start.
    const stop = stopSignal(log, config.shutdownMs);
    describeStart(log, flags, others);
    for (const warning of warnings) log.warn(warning);
    const [{ ControlPlane }, { clusterOf }] = await Promise.all([
      import("../control-plane.ts"),
      import("../source.ts"),
    ]);
    // What starting left behind would otherwise be collected in the middle of one of the first pushes.
    await new ControlPlane(config, log, await clusterOf(config, env)).run(stop, () => void collectHeap());
    return 0;
  } catch (error) {
    if (!(error instanceof MeshError)) throw error;
    if (log === undefined) process.stderr.write(`pilot-discovery: ${errorText(error)}\n`);
    else log.error(errorText(error), { code: error.code });
    return EXIT_FAILURE;
  }
}

function describeStart(log: Logger, flags: ParsedFlags, unknown: readonly string[]): void {
  for (const line of describeFlags(flags.values)) log.info(line);
  log.info(`version: ${VERSION_TEXT}`);
  const ineffective = ineffectiveFlags(flags);
  if (ineffective.length > 0) log.warn(`accepted without effect: ${ineffective.join("; ")}`);
  if (unknown.length > 0) log.warn(`unknown flags are ignored: ${unknown.join(" ")}`);
}

/** Aborts at the first SIGTERM or SIGINT. The second one does not wait, and neither does a drain that takes too long. */
function stopSignal(log: Logger, shutdownMs: number): AbortSignal {
  const stopping = new AbortController();
  const onSignal = (name: string) => {
    if (stopping.signal.aborted) process.exit(EXIT_FAILURE);
    log.info(`received ${name}`);
    stopping.abort();
    setTimeout(() => {
      log.error("some parts did not stop in time");
      process.exit(EXIT_FAILURE);
    }, shutdownMs + 1_000).unref();
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, onSignal);
  process.on("SIGHUP", (name) => {
    // A terminal that closes takes us with it. To a service it says "read your files again", which we do anyway.
    if (process.stdout.isTTY) onSignal(name);
    else log.info(`received ${name}: nothing to do, files are followed`);
  });
  return stopping.signal;
}
