/**
 * Proves by real connections that traffic is captured, as `istio-iptables --run-validation` does in an init container. It
 * takes Envoy's place for the moment, calls, and looks where the calls arrive; once a second until the time is up, since
 * another program (a CNI plugin) may be about to write the rules.
 */
import { randomUUID } from "node:crypto";
import { networkInterfaces } from "node:os";
import { formatDuration } from "@mizzen/go-text/duration";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { Dialect } from "../rules/family.ts";
import { FAMILY_NAMES, LOOPBACK } from "../settings/family.ts";
import type { Family } from "../settings/rule.ts";
import type { CaptureSettings } from "../settings/settings.ts";
import { missesUntil } from "./attempts.ts";
import { hasRoute } from "./dial.ts";
import { type Account, processAccount } from "./identity.ts";
import { formatEndpoint, greet } from "./listeners.ts";
import { inboundProbe, outboundProbe, type Probe, type ProbeInput } from "./probes.ts";

export interface ValidateInput {
  /** With users and groups as numbers. */
  readonly settings: CaptureSettings;
  readonly dialect: Dialect;
  /** Port that is called; nobody listens on it. */
  readonly port: number;
  /** Time until everything must have arrived. */
  readonly timeoutMs: number;
  readonly log: Logger;
}

/** Resolves when all that can be checked is captured; throws CAPTURE_INEFFECTIVE with all that is not. */
export async function validateCapture(input: ValidateInput): Promise<void> {
  const { log, settings, timeoutMs } = input;
  log.info(
    "Starting iptables validation. This check verifies that iptables rules are properly established for the network.",
  );
  const account = processAccount();
  const places = ownPlaces(settings);
  const planned = places.flatMap((place) => plannedProbes({ ...input, ...place, current: account.current }));
  const probes = await possibleProbes(planned, account, log);
  if (probes.length === 0) throw failure(["nothing can be checked with these settings as this user"], USER_ADVICE);
  await using listeners = new AsyncDisposableStack();
  const greeting = `mizzen-${randomUUID()}`;
  const families = places.map(({ family }) => family);
  const taken = await listenAsEnvoy({ input, families, greeting, listeners });
  const blocked = probes.filter(({ envoy }) => taken.has(formatEndpoint(envoy)));
  if (blocked.length > 0) {
    throw failure(
      blocked.map((probe) => `${nameOf(probe)}: ${taken.get(formatEndpoint(probe.envoy))}`),
      PORT_ADVICE,
    );
  }
  const misses = await missesUntil({ probes, greeting, account, log, signal: AbortSignal.timeout(timeoutMs) });
  if (misses.length > 0) {
    const time = formatDuration(timeoutMs);
    throw failure(
      misses.map(({ probe, outcome }) => `${nameOf(probe)}: ${sentence(probe)} in ${time}: ${outcome}`),
      RULES_ADVICE,
    );
  }
  for (const probe of probes) log.info(`${nameOf(probe)} is captured: ${formatEndpoint(probe.to)} led to Envoy's port`);
  log.info("Validation passed, iptables rules established");
}

interface PlannedProbe {
  readonly name: string;
  /** Undefined when the settings capture nothing of the kind. */
  readonly probe: Probe | undefined;
}

function plannedProbes(input: ProbeInput): readonly PlannedProbe[] {
  const family = FAMILY_NAMES[input.family];
  return [
    { name: `inbound ${family}`, probe: inboundProbe(input) },
    { name: `outbound ${family}`, probe: outboundProbe(input) },
  ];
}

type Place = Pick<ProbeInput, "family" | "interface" | "address">;

/** Families in which the pod has addresses; IPv6 counts when it is to be captured. */
function ownPlaces({ ipv6 }: CaptureSettings): readonly Place[] {
  const found = Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses
      .filter((one) => !one.internal && !one.address.startsWith("fe80:"))
      .map((one) => ({ name, address: one.address, family: one.family === "IPv4" ? "v4" : "v6" })),
  );
  const place = (family: Family): Place => {
    const one = found.find((candidate) => candidate.family === family);
    return { family, interface: one?.name ?? "eth0", address: one?.address };
  };
  if (!ipv6) return [place("v4")];
  return found.some(({ family }) => family === "v4") ? [place("v4"), place("v6")] : [place("v6")];
}

/** What this process can prove. An init container is often the proxy's user, and then cannot be anybody else. */
async function possibleProbes(
  planned: readonly PlannedProbe[],
  account: Account,
  log: Logger,
): Promise<readonly Probe[]> {
  const possible: Probe[] = [];
  for (const { name, probe } of planned) {
    const obstacle = await obstacleTo(probe, account);
    if (obstacle !== undefined) log.info(`${name} is not checked: ${obstacle}`);
    else if (probe !== undefined) possible.push(probe);
  }
  return possible;
}

async function obstacleTo(probe: Probe | undefined, account: Account): Promise<string | undefined> {
  if (probe === undefined) return "the settings capture none of it";
  const { caller, to } = probe;
  if (!account.mayBe(caller)) return `user ${account.current.uid} may not act as user ${caller.uid}`;
  return (await hasRoute(to)) ? undefined : `there is no route to ${to.address}`;
}

interface ListenInput {
  readonly input: ValidateInput;
  readonly families: readonly Family[];
  readonly greeting: string;
  readonly listeners: AsyncDisposableStack;
}

/** Listens on Envoy's ports; returns why that failed, by address, where it did. */
async function listenAsEnvoy({ input, families, greeting, listeners }: ListenInput): Promise<Map<string, string>> {
  const { settings, log } = input;
  const taken = new Map<string, string>();
  for (const family of families) {
    for (const port of [settings.proxyPort, settings.inboundPort]) {
      const endpoint = { address: LOOPBACK[family], port };
      log.info(`Listening on ${formatEndpoint(endpoint)}`);
      try {
        listeners.use(await greet(endpoint, greeting));
      } catch (error) {
        taken.set(formatEndpoint(endpoint), errorText(error));
        log.error(`Error on listening: ${errorText(error)}`);
      }
    }
  }
  return taken;
}

const RULES_ADVICE = `The rules are missing, incomplete, or of other settings.
With the Istio CNI plugin: the pod was started before the plugin was ready on its node. Delete the pod so that it is made anew;
with 'cni.repair.deletePods=true' this happens by itself. Without the plugin: run istio-iptables in this network namespace first.`;
const PORT_ADVICE = `Stop the program that listens there (Envoy, if it runs already), or check before it starts.`;
const USER_ADVICE = `Run as the proxy's user to check inbound traffic, as another one for outbound traffic, or as root for both.`;

function failure(reasons: readonly string[], advice: string): MeshError {
  const text = ["iptables validation failed; workload is not ready for Istio.", ...reasons, advice].join("\n");
  return new MeshError("CAPTURE_INEFFECTIVE", text);
}

function nameOf({ direction, family }: Probe): string {
  return `${direction} ${FAMILY_NAMES[family]}`;
}

function sentence({ caller, to, envoy }: Probe): string {
  return `a call of user ${caller.uid} to ${formatEndpoint(to)} did not reach Envoy's port ${envoy.port}`;
}
