/** The order of containers, which is the order in which the kubelet starts them. */
import {
  CORE_DUMP_CONTAINER,
  type Container,
  INIT_CONTAINER,
  type Pod,
  PROXY_CONTAINER,
  VALIDATION_CONTAINER,
  withSpec,
} from "./pod.ts";

/**
 * The proxy stands last, so that tools which take the first container take the application's, unless the application is
 * held until it runs. Init containers of the application run inside the mesh where the proxy is one of them; elsewhere they
 * run before traffic is redirected to a proxy that does not run yet.
 */
export function withOrderedContainers(pod: Pod, holdsApplication: boolean): Pod {
  const { containers, initContainers = [] } = pod.spec;
  const isNative = initContainers.some(({ name }) => name === PROXY_CONTAINER);
  return withSpec(pod, {
    containers: arranged(
      containers ?? [],
      holdsApplication ? { first: [PROXY_CONTAINER] } : { last: [PROXY_CONTAINER] },
    ),
    initContainers: isNative
      ? arranged(initContainers, {
          first: [INIT_CONTAINER, VALIDATION_CONTAINER, PROXY_CONTAINER, CORE_DUMP_CONTAINER],
        })
      : arranged(initContainers, { first: [VALIDATION_CONTAINER], last: [INIT_CONTAINER, CORE_DUMP_CONTAINER] }),
  });
}

function arranged(
  containers: readonly Container[],
  { first = [], last = [] }: { readonly first?: readonly string[]; readonly last?: readonly string[] },
): readonly Container[] {
  const named = (names: readonly string[]) =>
    names.flatMap((name) => containers.findLast((container) => container.name === name) ?? []);
  const others = containers.filter(({ name }) => !first.includes(name) && !last.includes(name));
  return [...named(first), ...others, ...named(last)];
}
