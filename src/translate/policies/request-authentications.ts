/** Which tokens a workload accepts, and where the keys to check them come from. */

import type { JwtRule, RequestAuthentication } from "#config/kinds/request-authentication/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { compareText } from "#lib/text/compare-text.ts";
import type { KeySetAddress } from "#model/key-set.ts";
import type { Snapshot } from "#model/snapshot.ts";
import type { JwtInput } from "../authentication/jwt-filter.ts";
import { outboundCluster } from "../names/names.ts";
import { derived } from "../recipes/indexes.ts";
import { isAttached, type Workload } from "./attachment.ts";
import { serviceNamed } from "./services-by-name.ts";

type Policy = ConfigObject<RequestAuthentication>;

/**
 * A key whose private half was thrown away, so that nobody can sign by it. It stands in for keys that are not there: a
 * filter without keys could not be told from one that has none to check.
 */
const NOBODYS_KEYS = `{
  "keys": [
    {
      "kty": "RSA",
      "e": "AQAB",
      "n": "0xObjM0UvS_oaazjpEYlAbwctEJ4L8pH3OuTb7qth7gUwqet-EzQB4dgFdvSdMgrLnSncQGRjpEYz3F3viIbH-3EN3TxSlPNviHxeOdyiBVfumN8dMxbLvVJUpfNOnvmMxJcl-8NNjAwcOjk4otSALaYgYYyOPyvKtgVdrQr-FoubWX4yrjxW-MJ2-7OBeepUUNOsVwGV23YX03sVkkyvY3otRflkBcY3_HKpBxJl9wk2GyOShN4_PNUF9-vwfnvOXMbCDX-w4PTef4geeb_GiT40YCKHTKMSPVanGRn5GExIWmki-mmqh94-mPTJyBR74ShspL3BxPZitDL574T1w"
    }
  ]
}`;
const EMPTY_LIST = /"keys"\s*:\s*\[\s*\]/;
const DISCOVERY_PATH = "/.well-known/openid-configuration";
const DEFAULT_TIMEOUT_MS = 5_000;

/** The policies of the workload's own namespace, then those of the root namespace, that select it. */
export function requestAuthenticationsOf(snapshot: Snapshot, workload: Workload): readonly Policy[] {
  const { requestAuthentications, mesh, features } = snapshot;
  if (requestAuthentications.length === 0) return requestAuthentications;
  return inNamespaces(`${workload.namespace}/${mesh.rootNamespace}`, requestAuthentications).filter((policy) =>
    isAttached(policy, workload, features),
  );
}

const inNamespaces = derived((key: string, policies: readonly Policy[]) =>
  [...new Set(key.split("/"))].flatMap((namespace) =>
    policies.filter(({ metadata }) => metadata.namespace === namespace),
  ),
);

/** What the filter of these policies depends on. */
export function jwtInput(snapshot: Snapshot, policies: readonly Policy[]): JwtInput {
  const jwtRules = policies.flatMap(({ spec }) => spec.jwtRules ?? []).sort(byIssuer);
  const sources = jwtRules.map((rule) => keySourceOf(snapshot, rule));
  return {
    jwtRules,
    jwtKeys: sources.map(({ keys }) => keys),
    jwtClusters: sources.map(({ cluster }) => cluster),
  };
}

/** The key sets that somebody has to fetch for the mesh, each once. */
export function wantedKeySets(snapshot: Snapshot): readonly KeySetAddress[] {
  const rules = snapshot.requestAuthentications.flatMap(({ spec }) => spec.jwtRules ?? []);
  const addresses = rules
    .filter((rule) => (rule.jwks ?? "") === "" && remoteCluster(snapshot, rule) === "")
    .flatMap((rule) => addressOf(rule) ?? []);
  return [...new Map(addresses.map((address) => [address.id, address])).values()];
}

function byIssuer({ issuer: a = "" }: JwtRule, { issuer: b = "" }: JwtRule): number {
  return compareText(a, b);
}

function keySourceOf(snapshot: Snapshot, rule: JwtRule): { readonly keys: string; readonly cluster: string } {
  const cluster = remoteCluster(snapshot, rule);
  if (cluster !== "") return { keys: "", cluster };
  const address = addressOf(rule);
  const fetched = address === undefined ? undefined : snapshot.keySets.get(address.id);
  const keys = asSet(rule.jwks ?? "") || fetched || NOBODYS_KEYS;
  // Envoy refuses the listener for it, and an issuer without keys would go on as if it still had those of before.
  return { keys: isEmptySet(keys) ? NOBODYS_KEYS : keys, cluster };
}

/** A single key as a set of it: Envoy rejects one without the list. */
function asSet(keys: string): string {
  return keys.includes('"kty"') && !keys.includes('"keys"') ? `{"keys":[${keys}]}` : keys;
}

/** The pattern spares reading sets that have keys; other lists of that name may stand inside of one. */
function isEmptySet(keys: string): boolean {
  return EMPTY_LIST.test(keys) && JSON.parse(keys).keys?.length === 0;
}

function addressOf({ issuer = "", jwksUri = "", timeout }: JwtRule): KeySetAddress | undefined {
  const timeoutMs = timeout ?? DEFAULT_TIMEOUT_MS;
  if (jwksUri !== "") return { id: jwksUri, discovers: false, timeoutMs };
  if (issuer === "") return undefined;
  return { id: `${issuer.replace(/\/$/, "")}${DISCOVERY_PATH}`, discovers: true, timeoutMs };
}

/** The cluster from which Envoy itself fetches the keys; empty when it does not. */
function remoteCluster({ features, services }: Snapshot, { jwksUri = "" }: JwtRule): string {
  const { keyFetching, domain } = features;
  if (keyFetching === "control-plane" || jwksUri === "" || !URL.canParse(jwksUri)) return "";
  const { hostname, port, protocol } = new URL(jwksUri);
  const number = port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
  // Inside the mesh people leave the domain out.
  const found = serviceNamed(services, hostname) ?? serviceNamed(services, `${hostname}.svc.${domain}`);
  if (found !== undefined) return outboundCluster(found.hostname, number);
  return keyFetching === "envoy" ? outboundCluster(hostname, number) : "";
}
