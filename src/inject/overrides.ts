/** Users adapt an injected container by writing one of the same name: what they wrote goes over the template's. */

import type { InjectionRequest } from "./injection-request.ts";
import { goJson } from "./json/go-json.ts";
import { strategicMerge } from "./kubernetes/strategic-merge.ts";
import { INTERCEPTION_MODE, OVERRIDES, STATUS } from "./pod/names.ts";
import {
  annotationOf,
  type Container,
  findContainer,
  INIT_CONTAINER,
  mapContainers,
  type Pod,
  PROXY_CONTAINER,
  readPod,
  VALIDATION_CONTAINER,
  withAnnotations,
} from "./pod/pod.ts";
import { overridesOf, parseStatus } from "./reinjection.ts";
import type { RunResult } from "./run-templates.ts";

/** An image that stands for the template's: a container must have one. */
const AUTO_IMAGE = "auto";

/**
 * The merged pod with the users' containers over it. On a first injection they are kept in an annotation, since a second one
 * could not tell them from its own.
 */
export function withOverrides({ merged, rendered }: RunResult, { pod, proxyConfig }: InjectionRequest): Pod {
  const kept = overridesOf(pod);
  const status = annotationOf(pod, STATUS);
  const injected = status === undefined ? undefined : parseStatus(status);
  const find = (list: readonly Container[] | null | undefined, name: string) =>
    list?.find((container) => container.name === name);
  const containers = names(rendered.spec.containers)
    .filter((name) => !injected?.containers.includes(name))
    .flatMap((name) => find(kept.containers, name) ?? find(pod.spec.containers, name) ?? [])
    .map(withoutAutoImage);
  const initContainers = names(rendered.spec.initContainers)
    .filter((name) => !injected?.initContainers.includes(name))
    .flatMap((name) => find(kept.initContainers, name) ?? findContainer(pod, name) ?? [])
    .map(withoutAutoImage);
  let result = merged;
  for (const container of containers) result = overlaid(result, { containers: [container] });
  for (const container of initContainers) result = overlaid(result, { initContainers: [container] });
  if (status === undefined && containers.length + initContainers.length > 0) {
    const overrides = {
      ...(containers.length === 0 ? {} : { containers }),
      ...(initContainers.length === 0 ? {} : { initContainers }),
    };
    result = withAnnotations(result, { ...result.metadata.annotations, [OVERRIDES]: goJson(overrides) });
  }
  return withAdjustedUser(result, pod, proxyConfig.interceptionMode === "TPROXY");
}

function names(containers: readonly Container[] | null | undefined): readonly string[] {
  return containers?.map(({ name }) => name) ?? [];
}

function overlaid(pod: Pod, spec: Readonly<Record<string, readonly Container[]>>): Pod {
  return readPod(strategicMerge("Pod", pod, { spec }));
}

function withoutAutoImage(container: Container): Container {
  if (container.image !== AUTO_IMAGE) return container;
  const { image: _, ...others } = container;
  return others;
}

/**
 * A user that runs the proxy under another uid needs the redirection to spare that uid, and the container that checks it to
 * run under it. With TPROXY the proxy must be root.
 */
function withAdjustedUser(pod: Pod, original: Pod, isTproxyByConfig: boolean): Pod {
  const { runAsUser, runAsGroup } = findContainer(original, PROXY_CONTAINER)?.securityContext ?? {};
  if (runAsUser === undefined && runAsGroup === undefined) return pod;
  const initName = [INIT_CONTAINER, VALIDATION_CONTAINER].find((name) =>
    pod.spec.initContainers?.some((container) => container.name === name),
  );
  if (initName === undefined) return pod;
  const isTproxy = isTproxyByConfig || annotationOf(pod, INTERCEPTION_MODE) === "TPROXY";
  const ids = {
    ...(runAsUser === undefined ? {} : { runAsUser }),
    ...(runAsGroup === undefined ? {} : { runAsGroup }),
  };
  return mapContainers(pod, (container) => {
    if (container.name === PROXY_CONTAINER && isTproxy && runAsUser !== undefined)
      return { ...container, securityContext: { ...container.securityContext, runAsUser: 0 } };
    if (container.name !== initName) return container;
    const securityContext = !isTproxy && initName === VALIDATION_CONTAINER ? ids : {};
    return {
      ...container,
      securityContext: { ...container.securityContext, ...securityContext },
      ...(runAsUser === undefined || runAsUser === 0 ? {} : { args: withUser(container.args ?? [], runAsUser) }),
    };
  });
}

/** The value behind the first `-u`. */
function withUser(args: readonly string[], user: number): readonly string[] {
  const at = args.indexOf("-u");
  return at < 0 || at + 1 >= args.length ? args : args.with(at + 1, String(user));
}
