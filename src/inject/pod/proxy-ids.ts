/** User and group of the proxy. OpenShift gives each namespace a range of them in annotations. */

import {
  type Container,
  containersOf,
  INIT_CONTAINER,
  mapContainers,
  type Pod,
  PROXY_CONTAINER,
  VALIDATION_CONTAINER,
} from "./pod.ts";

/** What Istio's proxies run as everywhere else. */
const DEFAULT_ID = 1337;
const UIDS = "openshift.io/sa.scc.uid-range";
const GROUPS = "openshift.io/sa.scc.supplemental-groups";

/** The last user of the namespace's range and the last group of its first range. */
export function proxyIds(annotations: Readonly<Record<string, string>> = {}): {
  readonly uid: number;
  readonly gid: number;
} {
  const uids = annotations[UIDS];
  const groups = annotations[GROUPS] ?? uids;
  return { uid: lastOf(uids) ?? DEFAULT_ID, gid: lastOf(groups?.split(",")[0]) ?? DEFAULT_ID };
}

/** The end of `START/SIZE` or `START-END`. */
function lastOf(range = ""): number | undefined {
  const match = /^(\d+)([/-])(\d+)/.exec(range.trim());
  if (match === null) return undefined;
  const [, start, form, other] = match;
  return form === "/" ? Number(start) + Number(other) - 1 : Number(other);
}

/**
 * OpenShift writes the same user into all containers of a pod. A proxy under the user of the application would not be
 * redirected around itself, so that user is taken for nobody's wish and removed.
 */
export function withoutSharedUser(pod: Pod): Pod {
  const userOf = (container: Container | undefined) => container?.securityContext?.runAsUser;
  const containers = containersOf(pod);
  const proxy = containers.find(({ name }) => name === PROXY_CONTAINER);
  const isOurs = ({ name }: Container) => [PROXY_CONTAINER, VALIDATION_CONTAINER, INIT_CONTAINER].includes(name);
  const application = containers.findLast((container) => !isOurs(container) && userOf(container) !== undefined);
  if (proxy?.securityContext === undefined || (userOf(proxy) ?? 0) !== (userOf(application) ?? 0)) return pod;
  const { runAsUser: _user, runAsGroup: _group, ...securityContext } = proxy.securityContext;
  return mapContainers(pod, (container) => (container === proxy ? { ...proxy, securityContext } : container));
}
