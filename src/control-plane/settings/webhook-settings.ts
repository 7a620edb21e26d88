/** Where the webhooks find what injection needs: files of a folder, or a ConfigMap and the nodes of the cluster. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { watchFiles } from "#ca/keys/watch-files.ts";
import type { Node, NodeStatus } from "#config/kinds/node/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { NodeVersion } from "#inject/injector/native-sidecars.ts";
import { Backoff } from "#lib/async/backoff.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { KubernetesApi, RawObject } from "#lib/kubernetes/api-client.ts";
import { type FollowOptions, follow } from "#lib/kubernetes/follow.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import type { Logger } from "#lib/log/log.ts";
import type { InjectionTexts } from "#webhooks/live-injector.ts";

/** What is known at any time. */
export interface WebhookSettings extends InjectionPlace {
  readonly texts: () => InjectionTexts;
}

/** What of the cluster of a pod decides about its injection. */
export interface InjectionPlace {
  /** Undefined without a cluster. */
  readonly nodes: () => readonly NodeVersion[] | undefined;
  readonly namespaceAnnotations: (namespace: string) => Readonly<Record<string, string>> | undefined;
}

const FILE_INTERVAL_MS = 1_000;
const RETRY = { initialMs: 200, maxMs: 10_000 };
const CORE = { group: "", version: "v1" };
const CONFIG_MAPS = { ...CORE, kind: "ConfigMap", plural: "configmaps", namespaced: true };
const NODES = { ...CORE, kind: "Node", plural: "nodes", namespaced: false };
const NAMESPACES = { ...CORE, kind: "Namespace", plural: "namespaces", namespaced: false };

/** `config` and `values` of a folder, followed; a missing file means that ours hold. */
export async function fileSettings(folder: string, signal: AbortSignal): Promise<WebhookSettings> {
  const files = ["config", "values"].map((name) => join(folder, name));
  let texts: InjectionTexts = {};
  const read = async () => {
    const [injectConfig, values] = await Promise.all(
      files.map((file) => readFile(file, "utf8").catch(() => undefined)),
    );
    if (injectConfig !== texts.injectConfig || values !== texts.values) texts = { injectConfig, values };
  };
  await read();
  watchFiles({ files, intervalMs: FILE_INTERVAL_MS, onChange: () => void read() }, signal);
  return { texts: () => texts, nodes: () => undefined, namespaceAnnotations: () => undefined };
}

export interface ClusterSettingsInput {
  readonly api: KubernetesApi;
  readonly namespace: string;
  /** Empty is the default one. */
  readonly revision: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
  readonly run: (loop: Promise<void>) => void;
}

/** The ConfigMap `istio-sidecar-injector` of the revision, nodes and namespaces, followed. */
export function clusterSettings({ api, namespace, revision, log, signal, run }: ClusterSettingsInput): WebhookSettings {
  let texts: InjectionTexts = {};
  const follower = (taken: (objects: ReadonlyMap<string, RawObject>) => void): FollowOptions["follower"] => {
    const known = new Map<string, RawObject>();
    const put = (object: RawObject) => void known.set(object.metadata.name, object);
    return {
      replace: async (objects) => {
        known.clear();
        for (const object of objects) put(object);
        taken(known);
      },
      put: (object) => {
        put(object);
        taken(known);
      },
      remove: (object) => {
        known.delete(object.metadata.name);
        taken(known);
      },
      trouble: (problem) => {
        if (problem !== undefined) log.warn("what injection needs cannot be read", { reason: refusalText(problem) });
      },
    };
  };
  let nodes: readonly NodeVersion[] = [];
  let namespaces: ReadonlyMap<string, RawObject> = new Map();
  const name = `istio-sidecar-injector${revision === "" || revision === "default" ? "" : `-${revision}`}`;
  const onConfigMap = (maps: ReadonlyMap<string, RawObject>) => {
    texts = textsOf(maps.get(name));
  };
  const onNodes = (known: ReadonlyMap<string, RawObject>) => {
    nodes = [...known.values()].map(nodeVersion);
  };
  const onNamespaces = (known: ReadonlyMap<string, RawObject>) => {
    namespaces = known;
  };
  const common = () => ({ api, signal, backoff: new Backoff(RETRY) });
  const byName = { namespace, fieldSelector: `metadata.name=${name}` };
  run(follow({ ...common(), ...byName, type: CONFIG_MAPS, follower: follower(onConfigMap) }));
  run(follow({ ...common(), type: NODES, follower: follower(onNodes) }));
  run(follow({ ...common(), type: NAMESPACES, follower: follower(onNamespaces) }));
  return {
    texts: () => texts,
    nodes: () => nodes,
    namespaceAnnotations: (wanted) => namespaces.get(wanted)?.metadata.annotations,
  };
}

/** A further cluster with these objects; undefined: nothing is known of it. */
export function placeIn(objects: readonly ConfigObject[] | undefined): InjectionPlace {
  const isNode = (object: ConfigObject): object is ConfigObject<Node, NodeStatus> => object.kind === "Node";
  return {
    nodes: () =>
      objects
        ?.filter(isNode)
        .map(({ metadata: { name }, status }) => ({ name, kubeletVersion: status?.nodeInfo?.kubeletVersion ?? "" })),
    namespaceAnnotations: (namespace) =>
      objects?.find(({ kind, metadata }) => kind === "Namespace" && metadata.name === namespace)?.metadata.annotations,
  };
}

function textsOf(map: RawObject | undefined): InjectionTexts {
  const data = isRecord(map) && isRecord(map.data) ? map.data : {};
  const text = (key: string) => (typeof data[key] === "string" ? data[key] : undefined);
  return { injectConfig: text("config"), values: text("values") };
}

function nodeVersion(node: RawObject): NodeVersion {
  const status = isRecord(node) && isRecord(node.status) ? node.status : {};
  const info = isRecord(status.nodeInfo) ? status.nodeInfo : {};
  return { name: node.metadata.name, kubeletVersion: String(info.kubeletVersion ?? "") };
}
