/** An IstioOperator, and what `--set` says in its words, as values of the chart. */
import { isRecord } from "#lib/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { overlaid, type Values } from "./values.ts";

/** Names of gateways that a list of components does not name. */
const GATEWAY_LISTS: Readonly<Record<string, string>> = {
  ingressGateways: "istio-ingressgateway",
  egressGateways: "istio-egressgateway",
};
/** Parts of Istio that are no part of ours; to switch them off is no mistake. */
const ABSENT_COMPONENTS = ["cni", "ztunnel", "istiodRemote"];
/** Settings of a Deployment that have the same name in the chart. */
const SAME_NAMES = [
  "resources",
  "replicaCount",
  "nodeSelector",
  "tolerations",
  "affinity",
  "podAnnotations",
  "serviceAnnotations",
];

/** The values that a file, or all of `--set`, asks for. `where` names it in messages. */
export function chartValues(given: Values, where: string): Values {
  const isOperator = given.kind === "IstioOperator";
  if (isOperator && given.spec !== undefined && !isRecord(given.spec)) throw invalid(where, "spec", "an object");
  if (given.kind !== undefined && !isOperator) {
    throw new MeshError("INSTALL_INVALID", `${where}: a ${String(given.kind)} is neither values nor an IstioOperator`);
  }
  const spec = isOperator ? recordAt(given, "spec", where) : given;
  const { values: _, components: __, hub, tag, namespace: ___, ...rest } = spec;
  const images = { ...(hub !== undefined && { hub }), ...(tag !== undefined && { tag }) };
  return [
    ...(Object.keys(images).length === 0 ? [] : [{ global: images }]),
    componentValues(recordAt(spec, "components", where), where),
    recordAt(spec, "values", where),
  ].reduce(overlaid, rest);
}

function componentValues(components: Values, where: string): Values {
  let values: Values = {};
  for (const [name, component] of Object.entries(components)) {
    const path = `${where}: components.${name}`;
    const standard = GATEWAY_LISTS[name];
    if (standard !== undefined) values = overlaid(values, gatewayValues(component, standard, path));
    else if (name === "pilot") values = overlaid(values, { pilot: deploymentValues(record(component, path), path) });
    else if (ABSENT_COMPONENTS.includes(name)) refuseIfEnabled(record(component, path), path);
    else if (name !== "base") throw new MeshError("INSTALL_INVALID", `${path}: there is no such component`);
  }
  return values;
}

function refuseIfEnabled({ enabled }: Values, path: string): void {
  if (enabled === true) throw new MeshError("INSTALL_INVALID", `${path}: is no part of this mesh`);
}

function gatewayValues(list: unknown, standard: string, path: string): Values {
  if (!Array.isArray(list)) throw new MeshError("INSTALL_INVALID", `${path}: a list is wanted`);
  const gateways = list.flatMap((item: unknown, i) => {
    if (item === null) return [];
    const { name = standard, label, ...rest } = record(item, `${path}[${i}]`);
    const labels = label === undefined ? {} : { labels: label };
    const component = { component: standard === "istio-egressgateway" ? "EgressGateways" : "IngressGateways" };
    return [[String(name), { ...component, ...labels, ...deploymentValues(rest, `${path}[${i}]`) }] as const];
  });
  return { gateways: Object.fromEntries(gateways) };
}

function deploymentValues(component: Values, path: string): Values {
  const { enabled, k8s } = component;
  const own = enabled === undefined ? {} : { enabled };
  return k8s === undefined ? own : { ...own, ...kubernetesValues(record(k8s, `${path}.k8s`), `${path}.k8s`) };
}

function kubernetesValues(k8s: Values, path: string): Values {
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(k8s)) {
    if (SAME_NAMES.includes(name)) values[name] = value;
    else if (name === "env") values.env = environment(value, `${path}.env`);
    else if (name === "hpaSpec") Object.assign(values, autoscaling(record(value, `${path}.hpaSpec`)));
    else if (name === "service") Object.assign(values, service(record(value, `${path}.service`)));
    else throw new MeshError("INSTALL_INVALID", `${path}.${name}: cannot be set here`);
  }
  return values;
}

function environment(list: unknown, path: string): Values {
  if (!Array.isArray(list)) throw new MeshError("INSTALL_INVALID", `${path}: a list is wanted`);
  const variables = list.map((item: unknown, i) => {
    const { name, value } = record(item, `${path}[${i}]`);
    if (typeof name !== "string" || value === undefined) {
      throw new MeshError("INSTALL_INVALID", `${path}[${i}]: a name and a value are wanted`);
    }
    return [name, value] as const;
  });
  return Object.fromEntries(variables);
}

function autoscaling({ minReplicas, maxReplicas }: Values): Values {
  const bounds = { autoscaleMin: minReplicas, autoscaleMax: maxReplicas };
  return { autoscaleEnabled: true, ...defined(bounds) };
}

function service({ type, ports }: Values): Values {
  return defined({ type, ports });
}

function defined(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function recordAt(values: Values, name: string, where: string): Values {
  return values[name] === undefined ? {} : record(values[name], `${where}: ${name}`);
}

function record(value: unknown, path: string): Values {
  if (!isRecord(value)) throw new MeshError("INSTALL_INVALID", `${path}: an object is wanted`);
  return value;
}

function invalid(where: string, name: string, wanted: string): MeshError {
  return new MeshError("INSTALL_INVALID", `${where}: ${name}: ${wanted} is wanted`);
}
