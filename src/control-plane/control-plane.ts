/**
 * The parts of the control plane, put together. Constructing does nothing; `run` starts them in this order:
 *
 *     HTTP (not ready) -> xDS, source, first snapshot -> CA -> own certificate -> preparation
 *     -> gRPC 15012, 15010, webhooks 15017 -> ready
 */
import { dump } from "js-yaml";
import { SecretAccess } from "#authn/secret-access.ts";
import type { Authority } from "#ca/authority/authority.ts";
import { authorityStatus } from "#ca/authority/expiry.ts";
import { certificateService } from "#ca/service/certificate-service.ts";
import { IdentityLimit } from "#ca/service/identity-limit.ts";
import type { WorkloadRegistration } from "#controllers/registration/workload-registration.ts";
import { debugAnswer } from "#debug/answer.ts";
import { apiForm } from "#debug/pages/api-form.ts";
import { Readiness } from "#debug/readiness.ts";
import type { DebugOptions } from "#debug/routes.ts";
import { statusMessages } from "#debug/status-messages.ts";
import { TaskGroup } from "#lib/async/task-group.ts";
import { callCredentials } from "#lib/grpc/call-credentials.ts";
import { GrpcListener, type GrpcListenerOptions } from "#lib/grpc/grpc-listener.ts";
import type { Methods, ServerCall } from "#lib/grpc/server-call.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import type { RootLogger } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { ServerIdentitySource } from "#lib/net/server-identity.ts";
import { pemCertificates } from "#lib/pki/pem.ts";
import type { PublishedText } from "#lib/published-text.ts";
import type { Caller, Source } from "#model/ports.ts";
import type { GatewayAddressSource } from "#sources/gateways/gateway-address-source.ts";
import type { KeySetSource } from "#sources/jwks/key-set-source.ts";
import { AdsServer } from "#xds/ads-server.ts";
import { PushJournal } from "#xds/journal/push-journal.ts";
import { translatedParts, translatedPartsWith } from "#xds/parts/translated-parts.ts";
import { type ConflictWatch, conflictWatch } from "./conflict-watch.ts";
import { controlzListener } from "./controlz.ts";
import { gatewayAddressesOf } from "./gateway-addresses.ts";
import { httpListeners } from "./http.ts";
import { keySetsOf } from "./key-sets.ts";
import { runDuties } from "./kubernetes-duties.ts";
import { Admissions } from "./metrics/admissions.ts";
import { countedCalls } from "./metrics/grpc-metrics.ts";
import { addKubernetesGauges, countedEvents } from "./metrics/kubernetes-metrics.ts";
import {
  addCaMetrics,
  addConflictMetrics,
  addProxyMetrics,
  type ControlPlaneMetrics,
  controlPlaneMetrics,
} from "./metrics/metrics.ts";
import { registrationOf } from "./registration.ts";
import {
  type Authenticate,
  authentication,
  nodeAgents,
  publishedRoots,
  type SecurityInput,
  type StartedCa,
  startCa,
  startServerIdentity,
} from "./security.ts";
import { byAliases, withAliases } from "./settings/cluster-aliases.ts";
import type { DiscoveryConfig } from "./settings/config.ts";
import { controlPlaneName } from "./settings/control-plane-name.ts";
import { apiOfCluster, apisOfClusters, type MeshSource, objectsOfCluster, remoteClusters, sourceOf } from "./source.ts";
import { type Webhooks, webhooksOf } from "./webhooks.ts";

/** Of connections and bodies on the port for webhooks; its budget shows in memory twice while bodies are decrypted. */
const WEBHOOK_BYTES = 16 * 1024 * 1024;

/** Something that serves on an address. */
interface Listener {
  start(): Promise<string>;
  stop(graceMs: number): Promise<void>;
}

export class ControlPlane {
  readonly #config: DiscoveryConfig;
  readonly #log: RootLogger;
  readonly #source: MeshSource;
  readonly #keySets: KeySetSource;
  readonly #gatewayAddresses: GatewayAddressSource;
  readonly #metrics: ControlPlaneMetrics;
  readonly #journal = new PushJournal();
  readonly #conflicts: ConflictWatch;
  readonly #registration: WorkloadRegistration | undefined;
  readonly #xds: AdsServer;
  readonly #readiness = new Readiness();
  readonly #security: SecurityInput;
  readonly #authenticate: Authenticate;
  readonly #tasks = new TaskGroup();
  readonly #admissions: Admissions;
  readonly #listeners: Listener[] = [];
  #authority: Authority | undefined;
  #webhooks: Webhooks | undefined;

  constructor(config: DiscoveryConfig, log: RootLogger, cluster?: KubernetesApi) {
    this.#config = config;
    this.#log = log;
    const events = countedEvents({ count: (...figure) => this.#metrics.count(...figure) }, config.features.clusterId);
    this.#source = sourceOf({ config, cluster, events, log });
    this.#metrics = controlPlaneMetrics(this.#source, Date.now);
    this.#admissions = new Admissions(this.#metrics, log.scope("admission"));
    if (cluster !== undefined) addKubernetesGauges(this.#metrics, this.#source, () => remoteClusters(this.#source));
    this.#source.subscribe(() => {
      this.#metrics.observe("pilot_pushcontext_init_seconds", this.#source.buildSeconds());
    });
    this.#keySets = keySetsOf({ config, taker: this.#source, metrics: this.#metrics, log });
    this.#gatewayAddresses = gatewayAddressesOf({
      resolves: config.resolvesGatewayNames,
      taker: this.#source,
      log: log.scope("model"),
    });
    this.#registration = registrationOf({
      config,
      source: this.#source,
      cluster,
      count: (name) => this.#metrics.count(name),
      log,
    });
    this.#xds = new AdsServer({
      ...(this.#registration && { observer: this.#registration }),
      source: this.#source,
      partsOf: withAliases(
        cluster === undefined ? translatedParts : translatedPartsWith(this.#secretAccess(cluster)),
        config.clusterAliases,
      ),
      log,
      metrics: this.#metrics,
      journal: this.#journal,
      // An operator who asks for no proof believes what proxies claim.
      checksIdentity: config.xds.checksIdentity && config.xds.proofOn !== "none",
      countsPatches: config.xds.countsPatches,
      limits: { requestsPerSecond: config.xds.requestsPerSecond },
      ...(config.xds.debounce && { debounce: config.xds.debounce }),
      debug: (page, caller) => debugAnswer(page, caller, this.#debugOptions()),
      status: (question, caller) => statusMessages(question, caller, this.#debugOptions()),
      controlPlane: controlPlaneName(config.podName, config.revision),
      ...(config.ca.multiRoot && { trustRoots: () => pemCertificates(this.#authority?.trustBundle() ?? "") }),
    });
    this.#conflicts = conflictWatch({ source: this.#source, metrics: this.#metrics, log });
    addConflictMetrics(this.#metrics, this.#conflicts);
    addProxyMetrics(this.#metrics, this.#source, () => this.#xds.connections());
    this.#security = {
      config,
      mesh: () => this.#source.current().mesh,
      onMesh: (listener) => this.#source.subscribe(listener),
      log,
      now: Date.now,
      cluster,
      apiOf: byAliases(
        (clusterId) => (clusterId === config.features.clusterId ? cluster : apiOfCluster(this.#source, clusterId)),
        config.clusterAliases,
      ),
    };
    this.#authenticate = authentication(this.#security);
  }

  /**
   * Serves until the signal aborts; rejects when a part cannot start or fails. Once only. `prepared` is called when all that
   * proxies will ask for has been built, and before any of them is let in.
   */
  async run(signal: AbortSignal, prepared: () => void = () => undefined): Promise<void> {
    const stop = aborted(signal);
    try {
      await this.#start(signal, stop, prepared);
      await this.#tasks.until(stop);
    } finally {
      this.#readiness.block("shutdown");
      const { shutdownMs } = this.#config;
      this.#log.info("stopping", { shutdownMs });
      // Loops end their streams while the listeners wait for them.
      await this.#registration?.stop();
      await Promise.all([this.#tasks.stop(), ...this.#listeners.map((listener) => listener.stop(shutdownMs))]);
    }
  }

  async #start(signal: AbortSignal, stop: Promise<void>, prepared: () => void): Promise<void> {
    using _starting = this.#readiness.block("first snapshot and CA");
    await this.#startHttp();
    await this.#startControlz();
    const first = firstSnapshot(this.#source);
    this.#tasks.start((signal) => this.#xds.run(signal));
    this.#tasks.start((signal) => this.#conflicts.run(signal));
    this.#tasks.start((signal) => this.#source.run(signal));
    this.#tasks.start((signal) => this.#keySets.run(signal));
    this.#tasks.start((signal) => this.#gatewayAddresses.run(signal));
    await this.#tasks.until(Promise.race([first, stop]));
    // A proxy that came before would call endpoints of other networks directly, where nobody answers.
    await this.#tasks.until(Promise.race([this.#gatewayAddresses.tried(), stop]));
    if (signal.aborted) return;
    this.#log.info("mesh configuration:", {}, `\n${dump(apiForm(this.#source.current().mesh))}`);
    const ca = await startCa(this.#security, this.#tasks, signal);
    if (signal.aborted) return;
    const authority = ca?.authority;
    this.#authority = authority;
    if (ca !== undefined) {
      addCaMetrics(this.#metrics, ca.authority, Date.now);
      ca.authority.onTrustChanged(() => this.#xds.refresh());
    }
    const identity = await startServerIdentity(this.#security, authority, this.#tasks);
    await this.#xds.prepare();
    prepared();
    this.#takeUpDuties(ca, publishedRoots(authority, identity));
    await this.#startGrpc(authority, identity);
    await this.#startWebhooks(identity);
    this.#log.info("control plane is ready");
  }

  #secretAccess(api: KubernetesApi): SecretAccess {
    const apiOf = (clusterId: string) => (clusterId === "" ? api : this.#security.apiOf?.(clusterId));
    const onChange = () => this.#xds.refresh();
    return new SecretAccess({ apiOf, onChange, now: Date.now, log: this.#log.scope("sds") });
  }

  #takeUpDuties(ca: StartedCa | undefined, roots: PublishedText | undefined): void {
    const { cluster, config } = this.#security;
    if (cluster === undefined) return;
    this.#tasks.start((signal) =>
      runDuties(
        {
          cluster,
          config,
          ca,
          roots,
          source: this.#source,
          pushes: this.#journal,
          connections: () => this.#xds.connections(),
          conflicts: () => this.#conflicts.conflicts,
          clusters: () => apisOfClusters(this.#source),
          count: (name, labels) => this.#metrics.count(name, labels),
          log: this.#log,
        },
        signal,
      ),
    );
  }

  #debugOptions(): DebugOptions {
    return {
      source: this.#source,
      connections: () => this.#xds.connections(),
      pushes: this.#journal,
      conflicts: () => this.#conflicts.conflicts,
      templates: () => this.#webhooks?.templates() ?? {},
      ...(this.#security.cluster && { remoteClusters: () => remoteClusters(this.#source) }),
      held: () => this.#xds.held,
      hasSentAll: () => this.#xds.hasSentAll,
      push: () => this.#xds.refresh(),
      authority: () => (this.#authority === undefined ? undefined : authorityStatus(this.#authority, Date.now())),
      authenticate: this.#authenticate,
      seesAll: (namespace: string) => this.#seesAll(namespace),
      budget: this.#xds.debugBudget,
      log: this.#log.scope("debug"),
    };
  }

  /** Who may look at proxies of all namespaces. */
  #seesAll(namespace: string): boolean {
    const { keepsApart, seeingAll } = this.#config.debugAccess ?? { keepsApart: true, seeingAll: [] };
    return !keepsApart || namespace === this.#source.current().mesh.rootNamespace || seeingAll.includes(namespace);
  }

  /** For people who look for a fault: its absence is none. */
  async #startControlz(): Promise<void> {
    const { controlz, revision } = this.#config;
    if (controlz === undefined) return;
    const { scopes } = this.#log;
    const listener = controlzListener({ ...controlz, revision, scopes, ...this.#debugOptions() });
    try {
      await this.#listen("ControlZ", listener);
    } catch (error) {
      if (!(error instanceof MeshError)) throw error;
      this.#log.warn("ControlZ is not served", { reason: error.message });
    }
  }

  async #startHttp(): Promise<void> {
    const listeners = httpListeners({
      config: this.#config,
      readiness: this.#readiness,
      metrics: this.#metrics,
      debug: this.#debugOptions(),
      admissions: this.#admissions,
    });
    for (const { what, listener } of listeners) await this.#listen(what, listener);
  }

  /** Certificates are asked for over TLS; in plain text only when there is no TLS at all, as by istiod. */
  async #startGrpc(authority: Authority | undefined, identity: ServerIdentitySource | undefined): Promise<void> {
    const { grpc, secureGrpc } = this.#config.listen;
    const ca = authority === undefined ? [] : [this.#certificateService(authority)];
    if (secureGrpc !== undefined && identity !== undefined) {
      const services = [this.#xdsService(true), ...ca];
      const address = { flag: "--secureGRPCAddr", address: secureGrpc };
      await this.#listen("secure gRPC discovery service", this.#grpcListener({ ...address, services, identity }));
    } else if (secureGrpc !== undefined) {
      this.#log.warn("no TLS listener: there is neither a CA (ENABLE_CA_SERVER) nor a certificate (--tlsCertFile)");
    }
    if (grpc === undefined) return;
    const isOnlyPort = secureGrpc === undefined || identity === undefined;
    const services = [this.#xdsService(false), ...(isOnlyPort ? ca : [])];
    await this.#listen("gRPC discovery service", this.#grpcListener({ flag: "--grpcAddr", address: grpc, services }));
  }

  #xdsService(isTls: boolean): Methods {
    const { proofOn = "tls" } = this.#config.xds;
    const proves = proofOn === "all" || (proofOn === "tls" && isTls);
    return this.#xds.service(proves ? (call) => this.#callerOf(call) : async () => undefined);
  }

  async #startWebhooks(identity: ServerIdentitySource | undefined): Promise<void> {
    const { webhooks: config, namespace, revision } = this.#config;
    if (config === undefined) return;
    if (identity === undefined)
      return this.#log.warn("injection and validation are not served: there is no certificate");
    const { cluster } = this.#security;
    const [metrics, tasks, log] = [this.#metrics, this.#tasks, this.#log];
    const snapshot = () => this.#source.current();
    const objectsOf = (clusterId: string) => objectsOfCluster(this.#source, clusterId);
    const admission = this.#admissions.of(config.address.port, { strangerBytes: WEBHOOK_BYTES });
    const shared = { snapshot, objectsOf, metrics, tasks, log, admission, readiness: this.#readiness };
    const input = { config, namespace, revision, identity, cluster, ...shared };
    this.#webhooks = await webhooksOf(input);
    await this.#listen("webhook service", this.#webhooks.listener);
  }

  #grpcListener(options: Omit<GrpcListenerOptions, "keepalive">): GrpcListener {
    const { keepalive, xds } = this.#config;
    const admission = this.#admissions.of(options.address.port);
    return new GrpcListener({ ...options, ...xds.callLimits, keepalive, admission });
  }

  #certificateService(signer: Authority): Methods {
    const log = this.#log.scope("serverca");
    const limit = new IdentityLimit({ perSecond: this.#config.ca.requestsPerIdentity, now: Date.now });
    return certificateService({
      signer,
      authenticate: this.#authenticate,
      count: (name) => this.#metrics.count(name),
      allow: (identity) => limit.take(identity),
      nodeAgents: nodeAgents(this.#security),
      counted: countedCalls(this.#metrics, () => performance.now()),
      log,
    });
  }

  async #callerOf(call: ServerCall): Promise<Caller> {
    const result = await this.#authenticate(callCredentials(call));
    if ("caller" in result) return result.caller;
    throw new MeshError("CALLER_REFUSED", result.refused);
  }

  async #listen(what: string, listener: Listener): Promise<void> {
    this.#listeners.push(listener);
    this.#log.info(`starting ${what} at ${await listener.start()}`);
  }
}

function firstSnapshot(source: Source): Promise<void> {
  return new Promise((resolve) => {
    const stop = source.subscribe(() => {
      stop();
      resolve();
    });
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
