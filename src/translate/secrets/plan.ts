/**
 * Secrets that a proxy asks for by the names which Gateways and DestinationRules give (`credentialName`). Who may have one is
 * decided by the namespace that the proxy proved, never by what it says. In Kubernetes its account also needs the right to
 * list Secrets there; roots are public. Proxies of a further cluster have the Secrets of that cluster first. Keys are wrapped
 * for the hardware that a proxy's settings name.
 *
 *     kubernetes://NAME, kubernetes://NAMESPACE/NAME   certificate and key of a Secret in the proxy's own namespace
 *     ... -cacert                                      the roots in it, or in the Secret without that ending
 *     configmap://NAMESPACE/NAME                       roots in a ConfigMap, which are no secret
 */

import type { ConfigMap } from "#config/kinds/config-map/schema.ts";
import type { Secret } from "#config/kinds/secret/schema.ts";
import type { MeshConfig } from "#config/mesh/mesh-config.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import type { Proxy as MeshProxy } from "#model/proxy/proxy.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { derived } from "../recipes/indexes.ts";
import { type Recipe, recipe } from "../recipes/recipe.ts";
import { mayHave } from "../traits/capabilities.ts";
import { proxyConfigOf } from "../traits/traits.ts";
import {
  certificateSecret,
  configMapHoldsRoots,
  configMapRoots,
  holdsCertificate,
  holdsRoots,
  type KeyProvider,
  rootsSecret,
} from "./secret.ts";

/** Who asks. */
export interface SecretsView {
  readonly key: string;
  readonly clusterId: string;
  readonly namespace: string;
  /** Whether keys are for it; it is asked only when it wants one. */
  readonly mayReadKeys: () => boolean;
  readonly keyProvider: KeyProvider | undefined;
}

const KUBERNETES = "kubernetes://";
const CONFIG_MAP = "configmap://";
const ROOTS = "-cacert";

/** The rights of accounts to read Secrets of their namespace, as far as they are known. */
export interface SecretRights {
  /** False when nothing is known. */
  mayRead(account: Account): boolean;
  /** Finds out what is not known, or was long ago. */
  ask(account: Account): void;
}

/** Who a proxy proved to be, and the cluster it is in. */
export type Account = NonNullable<MeshProxy["verified"]> & { readonly clusterId: string };

const EVERYBODY: SecretRights = { mayRead: () => true, ask: () => {} };

/** What a proxy may see; undefined for one that did not prove who it is. */
export function secretsView(proxy: MeshProxy, mesh: MeshConfig, rights = EVERYBODY): SecretsView | undefined {
  const { verified, type, metadata } = proxy;
  if (verified === undefined) return undefined;
  const clusterId = String(metadata.CLUSTER_ID ?? "");
  const account: Account = { ...verified, clusterId };
  const { namespace, serviceAccount } = verified;
  const mayRead = rights.mayRead(account);
  // Gateways nearly always want a key soon, sidecars hardly ever.
  if (mayRead || type === "router") rights.ask(account);
  const { privateKeyProvider: wanted } = proxyConfigOf("", metadata, mesh);
  const extension = wanted?.cryptomb ? "cryptomb" : wanted?.qat && "qat";
  // An Envoy without it would have no certificate at all.
  const keyProvider = extension && mayHave(proxy, extension) ? wanted : undefined;
  const where = `${clusterId}/${namespace}`;
  const wrapped = keyProvider === undefined ? "" : ` ${JSON.stringify(keyProvider)}`;
  const key = mayRead ? `secrets:${where}${wrapped}` : `roots:${where}/${serviceAccount}`;
  const mayReadKeys = () => {
    if (!mayRead) rights.ask(account);
    return mayRead;
  };
  return { key, clusterId, namespace, mayReadKeys, keyProvider };
}

/** The secret of that name; undefined when there is none for this proxy. */
export function planSecret(snapshot: Snapshot, view: SecretsView, name: string): Recipe | undefined {
  if (name.startsWith(CONFIG_MAP)) return planConfigMap(snapshot, name);
  if (!name.startsWith(KUBERNETES)) return undefined;
  const [first = "", second] = name.slice(KUBERNETES.length).split("/");
  const [namespace, called] = second === undefined ? [view.namespace, first] : [first, second];
  if (namespace !== view.namespace) return undefined;
  const tables = tablesFor(snapshot, view);
  const find = (of: string, holds: (secret: Secret) => boolean) =>
    tables.map((table) => table.get(`${namespace}/${of}`)).find((secret) => secret !== undefined && holds(secret.spec));
  if (!called.endsWith(ROOTS)) {
    const secret = find(called, holdsCertificate);
    if (secret === undefined || !view.mayReadKeys()) return undefined;
    const { keyProvider } = view;
    return recipe({ name, input: { name, secret, keyProvider }, build: certificateSecret });
  }
  const secret = find(called, holdsRoots) ?? find(called.slice(0, -ROOTS.length), holdsRoots);
  return secret && recipe({ name, input: { name, secret }, build: rootsSecret });
}

/** Where Secrets are looked for: in the proxy's own cluster first, then in that of the configuration. */
function tablesFor({ secrets, clusterSecrets }: Snapshot, { clusterId }: SecretsView) {
  const there = clusterSecrets.find((cluster) => cluster.clusterId === clusterId)?.secrets;
  return [...(there === undefined ? [] : [named("", there)]), named("", secrets)];
}

function planConfigMap({ configMaps }: Snapshot, name: string): Recipe | undefined {
  const [namespace = "", called = ""] = name.slice(CONFIG_MAP.length).split("/");
  const wanted = called.endsWith(ROOTS) ? called.slice(0, -ROOTS.length) : called;
  const configMap = namedMap("", configMaps).get(`${namespace}/${wanted}`);
  if (configMap === undefined || !configMapHoldsRoots(configMap.spec)) return undefined;
  return recipe({ name, input: { name, configMap }, build: configMapRoots });
}

const named = derived((_: string, secrets: readonly ConfigObject<Secret>[]) => byName(secrets));
const namedMap = derived((_: string, configMaps: readonly ConfigObject<ConfigMap>[]) => byName(configMaps));

function byName<Spec>(objects: readonly ConfigObject<Spec>[]): ReadonlyMap<string, ConfigObject<Spec>> {
  return new Map(objects.map((object) => [`${object.metadata.namespace}/${object.metadata.name}`, object]));
}
