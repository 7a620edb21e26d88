/**
 * Gives every namespace a ConfigMap of the mesh: its roots, by which agents know whom to trust before they have spoken to
 * anybody, and the certificates that are revoked. Made when a namespace appears, put right when somebody changes or deletes it.
 */
import { configMapKind } from "#config/kinds/config-map/kind.ts";
import { resourceTypeOf } from "#config/kinds/kind.ts";
import { namespaceKind } from "#config/kinds/namespace/kind.ts";
import { Backoff } from "#lib/async/backoff.ts";
import { sleep } from "#lib/async/sleep.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type KubernetesApi, MERGE_PATCH, type RawObject } from "#lib/kubernetes/api-client.ts";
import { type Follower, follow } from "#lib/kubernetes/follow.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import { pathOf } from "#lib/kubernetes/resource-types.ts";
import type { Logger } from "#lib/log/log.ts";
import type { PublishedText } from "#lib/published-text.ts";
import { Rivals } from "./rivals.ts";
import { WorkQueue } from "./work-queue.ts";

/** The roots of the mesh, as the map is called unless somebody wants otherwise. */
export const ROOT_MAP: NamespaceMap = { name: "istio-ca-root-cert", key: "root-cert.pem" };

/** Certificates of the mesh's authorities that are revoked. */
export const REVOCATION_MAP: NamespaceMap = { name: "istio-ca-crl", key: "ca-crl.pem" };

export interface NamespaceMap {
  readonly name: string;
  /** Under which the text is. */
  readonly key: string;
}

/** With the text that the maps should have. */
export interface NamespaceMapsOptions extends PublishedText {
  readonly api: KubernetesApi;
  readonly map: NamespaceMap;
  /** Namespaces that are part of the mesh; the others lose theirs. */
  readonly isOurs: (namespace: RawObject) => boolean;
  /** The only namespace that is looked at. */
  readonly only?: string | undefined;
  /** Calls when that has changed for some. */
  readonly onOurs: (changed: () => void) => () => void;
  readonly log: Logger;
}

/** Nothing of a mesh runs there. In `kube-system` the parts of it do that are of nodes. */
const SYSTEM_NAMESPACES = new Set(["kube-public", "kube-node-lease", "local-path-storage"]);
const NAMESPACES = resourceTypeOf(namespaceKind);
const CONFIG_MAPS = resourceTypeOf(configMapKind);
const RETRY = { initialMs: 200, maxMs: 10_000 };

/** Writes until the signal aborts. Only one replica may do this at a time. */
export async function keepNamespaceMaps(options: NamespaceMapsOptions, signal: AbortSignal): Promise<void> {
  const { api, map, only } = options;
  const maps = new NamespaceMaps(options, signal);
  const stops = [options.onText(() => maps.checkAll()), options.onOurs(() => maps.checkAll())];
  await Promise.all([
    follow({
      api,
      type: NAMESPACES,
      fieldSelector: only && `metadata.name=${only}`,
      follower: maps.namespaces,
      backoff: new Backoff(RETRY),
      signal,
    }),
    follow({
      api,
      type: CONFIG_MAPS,
      namespace: only,
      fieldSelector: `metadata.name=${map.name}`,
      follower: maps.configMaps,
      backoff: new Backoff(RETRY),
      signal,
    }),
  ]);
  for (const stop of stops) stop();
  await maps.stop();
}

class NamespaceMaps {
  readonly #options: NamespaceMapsOptions;
  readonly #namespaces = new Map<string, RawObject>();
  /** What each namespace has; undefined before that was read. */
  #known: Map<string, string | undefined> | undefined;
  readonly #queue: WorkQueue;
  readonly #rivals = new Rivals(() => performance.now());
  readonly #signal: AbortSignal;

  constructor(options: NamespaceMapsOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    this.#queue = new WorkQueue({
      work: (namespace) => this.#putRight(namespace),
      failed: (namespace, problem) => {
        options.log.warn("a ConfigMap cannot be put into a namespace", {
          name: options.map.name,
          namespace,
          reason: refusalText(problem),
        });
      },
    });
  }

  readonly namespaces: Follower = {
    replace: async (objects) => {
      this.#namespaces.clear();
      for (const object of objects) this.#namespaces.set(object.metadata.name, object);
      this.checkAll();
    },
    put: (object) => {
      this.#namespaces.set(object.metadata.name, object);
      this.#check(object.metadata.name);
    },
    remove: ({ metadata: { name } }) => {
      this.#namespaces.delete(name);
      this.#rivals.forget(name);
    },
    trouble: (problem) => this.#trouble("namespaces", problem),
  };

  readonly configMaps: Follower = {
    replace: async (objects) => {
      this.#known = new Map(objects.map((object) => [object.metadata.namespace ?? "", this.#textOf(object)]));
      this.checkAll();
    },
    put: (object) => {
      this.#known?.set(object.metadata.namespace ?? "", this.#textOf(object));
      this.#check(object.metadata.namespace ?? "");
    },
    remove: ({ metadata: { namespace = "" } }) => {
      this.#known?.delete(namespace);
      this.#check(namespace);
    },
    trouble: (problem) => this.#trouble("configmaps", problem),
  };

  checkAll(): void {
    for (const name of this.#namespaces.keys()) this.#check(name);
  }

  stop(): Promise<void> {
    return this.#queue.stop();
  }

  #trouble(what: string, problem: unknown): void {
    if (problem !== undefined) this.#options.log.warn(`${what} cannot be read`, { reason: refusalText(problem) });
  }

  #check(namespace: string): void {
    if (this.#known !== undefined && this.#isWrong(namespace)) this.#queue.add(namespace);
  }

  #isWrong(name: string): boolean {
    const namespace = this.#namespaces.get(name);
    if (namespace === undefined || namespace.metadata.deletionTimestamp !== undefined) return false;
    const has = this.#known?.has(name) === true;
    return this.#wants(namespace) ? this.#known?.get(name) !== this.#options.text() : has;
  }

  #wants(namespace: RawObject): boolean {
    return !SYSTEM_NAMESPACES.has(namespace.metadata.name) && this.#options.isOurs(namespace);
  }

  async #putRight(name: string): Promise<void> {
    const namespace = this.#namespaces.get(name);
    if (namespace === undefined || !this.#isWrong(name)) return;
    const pause = this.#rivals.pauseMs(name);
    if (pause > 0) {
      this.#options.log.warn("somebody else keeps writing it too: is there a second control plane?", {
        configMap: this.#options.map.name,
        namespace: name,
        pause: `${Math.ceil(pause / 1000)} s`,
      });
      void sleep(pause, this.#signal).then(() => this.#check(name));
      return;
    }
    try {
      if (this.#wants(namespace)) await this.#write(name);
      else await this.#options.api.call({ method: "DELETE", path: this.#pathIn(name) });
      this.#rivals.wrote(name);
    } catch (problem) {
      if (!isMoot(problem)) throw problem;
    }
  }

  async #write(namespace: string): Promise<void> {
    const { api, map, text } = this.#options;
    const metadata = { name: map.name, namespace, labels: { "istio.io/config": "true" } };
    const body = { apiVersion: "v1", kind: "ConfigMap", metadata, data: { [map.key]: text() } };
    if (this.#known?.has(namespace) === true) {
      await api.call({ method: "PATCH", path: this.#pathIn(namespace), body, contentType: MERGE_PATCH });
    } else await api.call({ method: "POST", path: pathOf(CONFIG_MAPS, { namespace }), body });
  }

  #pathIn(namespace: string): string {
    return pathOf(CONFIG_MAPS, { namespace, name: this.#options.map.name });
  }

  #textOf({ data }: RawObject): string | undefined {
    const text = isRecord(data) ? data[this.#options.map.key] : undefined;
    return typeof text === "string" ? text : undefined;
  }
}

/** Another was faster, or the namespace is going: the next event tells. */
function isMoot(problem: unknown): boolean {
  if (!(problem instanceof ApiError)) return false;
  const { status, message } = problem;
  return status === 404 || status === 409 || (status === 403 && message.includes("is being terminated"));
}
