/** Injection and validation, served with the control plane's own certificate. */
import type { ConfigObject } from "#config/schema/config-object.ts";
import { apiForm } from "#debug/pages/api-form.ts";
import type { Readiness } from "#debug/readiness.ts";
import { InjectionError } from "#inject/injector/injection-error.ts";
import { usesNativeSidecars } from "#inject/injector/native-sidecars.ts";
import type { Admission } from "#lib/admission/admission.ts";
import type { TaskGroup } from "#lib/async/task-group.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import type { Logger } from "#lib/log/log.ts";
import type { ServerIdentitySource } from "#lib/net/server-identity.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { DEFAULT_CLUSTER, type InjectionContext } from "#webhooks/injection.ts";
import { LiveInjector } from "#webhooks/live-injector.ts";
import { WebhookListener } from "#webhooks/webhook-listener.ts";
import type { ControlPlaneMetrics } from "./metrics/metrics.ts";
import type { WebhookConfig } from "./settings/webhook-config.ts";
import { clusterSettings, fileSettings, placeIn } from "./settings/webhook-settings.ts";

export interface WebhooksInput {
  readonly config: WebhookConfig;
  readonly namespace: string;
  readonly revision: string;
  readonly identity: ServerIdentitySource;
  readonly cluster: KubernetesApi | undefined;
  readonly snapshot: () => Snapshot;
  /** Of a further cluster; undefined for one that nothing is known of. */
  readonly objectsOf: (clusterId: string) => readonly ConfigObject[] | undefined;
  readonly metrics: ControlPlaneMetrics;
  readonly tasks: TaskGroup;
  readonly admission: Admission;
  readonly log: Logger;
  readonly readiness: Readiness;
}

/** What serves webhooks, and the templates it uses. */
export interface Webhooks {
  readonly listener: WebhookListener;
  /** Texts by name; none while the settings of injection were never right. */
  readonly templates: () => Readonly<Record<string, string>>;
}

/** Puts it together; what it looks up is followed from now on. */
export async function webhooksOf(input: WebhooksInput): Promise<Webhooks> {
  const { config, namespace, revision, identity, cluster, snapshot, objectsOf, metrics, tasks } = input;
  const log = input.log.scope("webhooks");
  const { signal } = tasks;
  const settings =
    cluster === undefined
      ? await fileSettings(config.folder, signal)
      : clusterSettings({ api: cluster, namespace, revision, log, signal, run: (loop) => tasks.start(() => loop) });
  const injector = new LiveInjector({
    mesh: () => snapshot().mesh,
    meshText: (mesh) => JSON.stringify(apiForm(mesh)),
    texts: settings.texts,
    revision,
    compliancePolicy: config.compliancePolicy,
    environment: config.environment,
    onProblem: (reason) => log.error("injection settings are wrong: the last good ones stay", { reason }),
  });
  const ownCluster = config.environment.CLUSTER_ID || DEFAULT_CLUSTER;
  const placeOf = (clusterId: string) => (clusterId === ownCluster ? settings : placeIn(objectsOf(clusterId)));
  const injection = (): InjectionContext => ({
    injector: injector.current(),
    proxyConfigs: snapshot().proxyConfigs.map(({ metadata, spec }) => ({ namespace: metadata.namespace, spec })),
    nativeSidecars: (nodeName, of) => usesNativeSidecars(config.nativeSidecars, placeOf(of).nodes(), nodeName),
    ...(config.isOpenShift && { namespaceAnnotations: (name, of) => placeOf(of).namespaceAnnotations(name) }),
  });
  const listener = new WebhookListener({
    flag: "--httpsAddr",
    address: config.address,
    identity,
    injection: config.injects ? injection : undefined,
    count: (name, labels) => metrics.count(name, labels),
    log: (message, fields) => log.warn(message, fields),
    onInjectionTime: (seconds) => metrics.observe("sidecar_injection_time_seconds", seconds),
    now: () => performance.now(),
    readiness: () => input.readiness.answer(),
    admission: input.admission,
  });
  return { listener, templates: () => templatesOf(injector) };
}

function templatesOf(injector: LiveInjector): Readonly<Record<string, string>> {
  try {
    return injector.current().templateTexts;
  } catch (error) {
    if (error instanceof InjectionError) return {};
    throw error;
  }
}
