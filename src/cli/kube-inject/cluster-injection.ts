/** Settings of injection as the ConfigMaps of a cluster hold them. */
import { existsSync } from "node:fs";
import { parseObject } from "#config/kinds/parse-object.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { type InjectionSettings, setsMeshConfig } from "#inject/injector/inject-settings.ts";
import { type NativeSidecarMode, usesNativeSidecars } from "#inject/injector/native-sidecars.ts";
import type { PlacedProxyConfig } from "#inject/mesh/proxy-config.ts";
import { ApiError, type KubernetesApi, type RawObject } from "#lib/kubernetes/api-client.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type ClusterOptions, kubeConfigFiles } from "../cluster/install-options.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface InjectionPlace extends ClusterOptions {
  readonly istioNamespace: string;
  readonly meshConfigMapName: string;
  readonly injectConfigMapName: string;
  readonly revision?: string;
}

type Api = Pick<KubernetesApi, "call">;
type Data = Readonly<Record<string, string | undefined>>;

export const MESH_CONFIG_MAP = "istio";
export const INJECT_CONFIG_MAP = "istio-sidecar-injector";

/** Whether somebody says which cluster: without that, files and defaults are all there is. */
export function hasCluster(options: ClusterOptions, terminal: Terminal): boolean {
  const isNamed = options.kubeconfig !== undefined || options.context !== undefined;
  return isNamed || kubeConfigFiles(options, terminal).some((file) => existsSync(file));
}

/** What files do not say, as the cluster has it. `given` has a text for all that they say. */
export async function settingsOfCluster(
  api: Api,
  place: InjectionPlace,
  given: InjectionSettings,
): Promise<InjectionSettings> {
  const named = place.revision || (await defaultRevision(api, place.istioNamespace));
  const revision = named === "default" ? "" : named;
  const read = (name: string, usual: string, flag: string) =>
    dataOf(api, { namespace: place.istioNamespace, name: revised(name, usual, revision), flag });
  const needsMesh = given.meshConfig === undefined && !setsMeshConfig(given.operator);
  const mesh = needsMesh ? await read(place.meshConfigMapName, MESH_CONFIG_MAP, "--meshConfigFile") : {};
  const needsValues = given.values === undefined && given.operator === undefined;
  const needsInjection = given.injectConfig === undefined || needsValues;
  const flag = given.injectConfig === undefined ? "--injectConfigFile" : "--valuesFile";
  const injection = needsInjection ? await read(place.injectConfigMapName, INJECT_CONFIG_MAP, flag) : {};
  if (needsMesh && mesh.mesh === undefined) throw missing('has no key "mesh"', place.meshConfigMapName);
  if (needsValues && injection.values === undefined) throw missing('has no key "values"', place.injectConfigMapName);
  return {
    ...given,
    revision,
    meshConfig: given.meshConfig ?? mesh.mesh,
    injectConfig: given.injectConfig ?? injection.config,
    values: given.values ?? injection.values,
  };
}

/** ProxyConfig objects, the oldest first; none where the cluster does not have the kind. */
export async function proxyConfigsOf(api: Api): Promise<readonly PlacedProxyConfig[]> {
  try {
    const path = "/apis/networking.istio.io/v1beta1/proxyconfigs";
    const { items } = await api.call<{ readonly items: readonly RawObject[] }>({ path });
    const since = ({ metadata }: RawObject) => String(metadata.creationTimestamp ?? "");
    return items
      .toSorted((a, b) => (since(a) < since(b) ? -1 : 1))
      .flatMap((item) => {
        const { object } = parseObject({ apiVersion: "networking.istio.io/v1beta1", kind: "ProxyConfig", ...item });
        const { metadata, spec } = (object ?? {}) as Partial<ConfigObject<PlacedProxyConfig["spec"]>>;
        return metadata === undefined || spec === undefined ? [] : [{ namespace: metadata.namespace, spec }];
      });
  } catch (problem) {
    if (problem instanceof ApiError && [403, 404].includes(problem.status)) return [];
    throw problem;
  }
}

/** Whether the proxy is to be an init container that stays, as the webhook of the cluster would decide. */
export async function nativeSidecarsOf(api: Api, mode: NativeSidecarMode): Promise<boolean> {
  if (mode !== "auto") return usesNativeSidecars(mode, undefined, undefined);
  try {
    const { items } = await api.call<{ readonly items: readonly RawObject[] }>({ path: "/api/v1/nodes" });
    const nodes = items.map(({ metadata, status }) => {
      const { nodeInfo } = (status ?? {}) as { readonly nodeInfo?: { readonly kubeletVersion?: string } };
      return { name: metadata.name, kubeletVersion: nodeInfo?.kubeletVersion ?? "" };
    });
    return usesNativeSidecars(mode, nodes, undefined);
  } catch (problem) {
    // Who may not see nodes gets what works on all of them.
    if (problem instanceof ApiError && problem.status === 403) return false;
    throw problem;
  }
}

/** A revision has ConfigMaps of its own, unless somebody names others. */
function revised(name: string, usual: string, revision: string): string {
  return name === usual && revision !== "" ? `${usual}-${revision}` : name;
}

/** The one that the tag `default` leads to. */
async function defaultRevision(api: Api, namespace: string): Promise<string> {
  const { RevisionTags } = await import("#install/revision-tags.ts");
  return (await new RevisionTags(api, namespace).defaultRevision()) ?? "";
}

async function dataOf(
  api: Api,
  { namespace, name, flag }: { readonly namespace: string; readonly name: string; readonly flag: string },
): Promise<Data> {
  try {
    const { data } = await api.call({ path: `/api/v1/namespaces/${namespace}/configmaps/${name}` });
    return (data ?? {}) as Data;
  } catch (problem) {
    if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
    throw missing(`is not in namespace ${namespace}: use ${flag}, or name the namespace by -i`, name);
  }
}

function missing(what: string, name: string): MeshError {
  return new MeshError("INJECTION_SETTINGS_MISSING", `ConfigMap ${name} ${what}`);
}
