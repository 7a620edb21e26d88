/**
 * Probes of the application, which the kubelet could not make through mutual TLS or against an application that is behind
 * the proxy: they are turned to the agent, which makes them in the kubelet's place.
 */
import { parseGoBool } from "#lib/go/go-bool.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { goJson } from "./json/go-json.ts";
import { REWRITE_PROBES, STATUS, STATUS_PORT } from "./pod/names.ts";
import {
  annotationOf,
  type Container,
  type EnvironmentVariable,
  findContainer,
  type Handler,
  mapContainers,
  type Pod,
  PROXY_CONTAINER,
  type Probe,
} from "./pod/pod.ts";

/** Tells the agent what each path stands for. */
const PROBERS_VARIABLE = "ISTIO_KUBE_APP_PROBERS";

/** A probe as the agent makes it. */
interface Prober {
  readonly httpGet?: Handler["httpGet"];
  readonly tcpSocket?: Handler["tcpSocket"];
  readonly grpc?: Handler["grpc"];
  readonly timeoutSeconds?: number;
}

/** What the installation says about probes. */
export interface ProbesInput {
  /** Of the mesh; what points there already was turned before. */
  readonly statusPort: number;
  /** Whether probes are turned where the pod does not say. */
  readonly rewritesProbes: boolean;
}

/** Whether probes are turned: an annotation counts more than the values. */
export function rewritesProbes(annotations: Readonly<Record<string, string>>, byDefault: boolean): boolean {
  const own = annotations[REWRITE_PROBES];
  return (own === undefined ? undefined : parseGoBool(own)) ?? byDefault;
}

/** The pod with its probes turned to the agent. */
export function withRewrittenProbes(pod: Pod, input: ProbesInput): Pod {
  const proxy = findContainer(pod, PROXY_CONTAINER);
  if (proxy === undefined) return pod;
  if (!rewritesProbes(pod.metadata.annotations ?? {}, input.rewritesProbes)) return pod;
  const probers = appProbers(pod, input.statusPort);
  const wasInjected = annotationOf(pod, STATUS) !== undefined;
  const told =
    probers === undefined
      ? pod
      : mapContainers(pod, (container) =>
          container === proxy
            ? { ...container, env: withProbers(container.env ?? [], probers, wasInjected) }
            : container,
        );
  return rewriteProbes(told, input.statusPort);
}

/** What the agent is told, as JSON by path; undefined when there is nothing to tell. */
export function appProbers(pod: Pod, statusPort: number): string | undefined {
  const probers = new Map<string, Prober>();
  for (const container of [...(pod.spec.initContainers ?? []), ...(pod.spec.containers ?? [])]) {
    if (container.name === PROXY_CONTAINER) continue;
    for (const { path, handler, timeoutSeconds } of handlersOf(container)) {
      const prober = proberOf(handler, container, statusPort);
      if (prober !== undefined) probers.set(path, { ...prober, ...(timeoutSeconds ? { timeoutSeconds } : {}) });
    }
  }
  return probers.size === 0 ? undefined : goJson(sorted(Object.fromEntries(probers)));
}

/** The probers put into the environment; those that an earlier injection left are kept. */
export function withProbers(
  env: readonly EnvironmentVariable[],
  probers: string,
  wasInjected: boolean,
): readonly EnvironmentVariable[] {
  const before = wasInjected ? env.find(({ name }) => name === PROBERS_VARIABLE) : undefined;
  if (before === undefined) return [...env, { name: PROBERS_VARIABLE, value: probers }];
  const known = parseProbers(before.value ?? "");
  if (known === undefined) return env;
  const value = goJson(sorted({ ...parseProbers(probers), ...known }));
  return env.map((one) => (one === before ? { name: PROBERS_VARIABLE, value } : one));
}

/** Turns every probe and hook that needs the network, whether or not the agent knows it. */
export function rewriteProbes(pod: Pod, meshStatusPort: number): Pod {
  const own = annotationOf(pod, STATUS_PORT);
  const port = own === undefined ? meshStatusPort : /^[+-]?\d+$/.test(own) ? Number(own) : 0;
  return mapContainers(pod, (container) =>
    container.name === PROXY_CONTAINER ? container : rewriteContainer(container, port),
  );
}

function rewriteContainer(container: Container, port: number): Container {
  const { name, lifecycle } = container;
  const probe = (field: "readinessProbe" | "livenessProbe" | "startupProbe", path: string) => {
    const before = container[field];
    return before === undefined ? {} : { [field]: turned<Probe>(before, `/app-health/${name}/${path}`, port) };
  };
  const hook = (field: "preStop" | "postStart", path: string) => {
    const before = lifecycle?.[field];
    const isTurned = before?.httpGet !== undefined || before?.tcpSocket !== undefined;
    return before !== undefined && isTurned ? { [field]: turned(before, `/app-lifecycle/${name}/${path}`, port) } : {};
  };
  return {
    ...container,
    ...probe("readinessProbe", "readyz"),
    ...probe("livenessProbe", "livez"),
    ...probe("startupProbe", "startupz"),
    ...(lifecycle === undefined
      ? {}
      : { lifecycle: { ...lifecycle, ...hook("preStop", "prestopz"), ...hook("postStart", "poststartz") } }),
  };
}

/** The agent is asked over plain HTTP; it speaks HTTPS, TCP or gRPC to the application itself. */
function turned<H extends Handler>(handler: H, path: string, port: number): H {
  const { httpGet, tcpSocket, grpc, ...others } = handler;
  if (httpGet === undefined && tcpSocket === undefined && grpc === undefined) return handler;
  const scheme = httpGet?.scheme === "HTTPS" ? { scheme: "HTTP" } : {};
  return { ...others, httpGet: { ...httpGet, path, port, ...scheme } } as H;
}

interface PlacedHandler {
  readonly path: string;
  readonly handler: Handler;
  readonly timeoutSeconds?: number | undefined;
}

function handlersOf({ name, readinessProbe, livenessProbe, startupProbe, lifecycle }: Container): PlacedHandler[] {
  const { preStop, postStart } = lifecycle ?? {};
  const withoutGrpc = ({ httpGet, tcpSocket }: Handler): Handler => ({
    ...(httpGet === undefined ? {} : { httpGet }),
    ...(tcpSocket === undefined ? {} : { tcpSocket }),
  });
  const probes = [
    [`/app-health/${name}/readyz`, readinessProbe],
    [`/app-health/${name}/livez`, livenessProbe],
    [`/app-health/${name}/startupz`, startupProbe],
    [`/app-lifecycle/${name}/prestopz`, preStop && withoutGrpc(preStop)],
    [`/app-lifecycle/${name}/poststartz`, postStart && withoutGrpc(postStart)],
  ] as const;
  return probes.flatMap(([path, handler]) =>
    handler === undefined ? [] : [{ path, handler, timeoutSeconds: timeoutOf(handler) }],
  );
}

function timeoutOf(handler: Probe | Handler): number | undefined {
  return "timeoutSeconds" in handler ? handler.timeoutSeconds : undefined;
}

/** Ports by number. What cannot be resolved, or points at the agent already, is left out. */
function proberOf(
  { httpGet, tcpSocket, grpc }: Handler,
  { ports = [] }: Container,
  statusPort: number,
): Prober | undefined {
  const resolve = (port: number | string): number | undefined => {
    if (typeof port === "number") return port === statusPort ? undefined : port;
    return ports.find(({ name }) => name === port)?.containerPort;
  };
  if (httpGet !== undefined) {
    const port = resolve(httpGet.port);
    return port === undefined ? undefined : { httpGet: { ...httpGet, port } };
  }
  if (tcpSocket !== undefined) {
    const port = resolve(tcpSocket.port);
    return port === undefined ? undefined : { tcpSocket: { ...tcpSocket, port } };
  }
  return grpc === undefined ? undefined : { grpc };
}

function parseProbers(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // somebody else wrote it: it stays
  }
}

function sorted(map: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}
