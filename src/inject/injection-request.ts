/** One pod to inject into, and what is known about the place it will run in. */
import type { Layer } from "#config/proxy-config/proxy-config.ts";
import type { Injector } from "./injector/injector.ts";
import type { Owner } from "./pod/owner.ts";
import type { Pod } from "./pod/pod.ts";

/** A pod and its surroundings. */
export interface InjectionRequest {
  readonly pod: Pod;
  readonly owner: Owner;
  readonly proxyConfig: Layer;
  /** Whether the nodes run sidecars as init containers that stay. */
  readonly nativeSidecars: boolean;
  /** Variables from the path of the webhook, for a control plane outside of the pod's cluster. */
  readonly proxyEnvironment: Readonly<Record<string, string>>;
  /** Annotations of the namespace; OpenShift gives users and groups there. */
  readonly namespaceAnnotations: Readonly<Record<string, string>> | undefined;
  readonly injector: Injector;
}
