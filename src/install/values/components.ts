/** The components of an IstioOperator: which there are, and what Kubernetes is told about them. */
import { isRecord } from "#lib/json/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { type ComponentPatch, checkResources } from "./component-patches.ts";
import { joined, overlaid, type Values } from "./values.ts";

/** What components say: values of the chart, gateways, and changes of the objects that the chart makes. */
export interface Components {
  readonly values: Values;
  /** Where the control plane is to be; empty: not said. */
  readonly namespace: string;
  /** Lists that are there, by the gateway of the chart that their gateways are like. An empty list is a list. */
  readonly gateways: Readonly<Record<string, readonly ListedGateway[]>>;
  /** Those of everything but gateways. */
  readonly patches: readonly ComponentPatch[];
}

/** One gateway of a list. */
export interface ListedGateway {
  readonly name: string;
  /** Empty: that of the control plane. */
  readonly namespace: string;
  readonly enabled: boolean;
  /** What it says otherwise than the gateway of the chart. */
  readonly values: Values;
  readonly resources: Values;
}

/** Lists of gateways, and the gateway of the chart that those of a list are like. */
const GATEWAY_LISTS: Readonly<Record<string, string>> = {
  ingressGateways: "istio-ingressgateway",
  egressGateways: "istio-egressgateway",
};
/** What can be said of a component; gateways have more. */
const FIELDS: Readonly<Record<"base" | "pilot", readonly string[]>> = {
  base: ["enabled", "k8s"],
  pilot: ["enabled", "namespace", "hub", "tag", "k8s"],
};
const GATEWAY_FIELDS = [...FIELDS.pilot, "name", "label"];
/** Parts of Istio that are no part of ours; to switch them off is no mistake. */
const ABSENT_COMPONENTS = ["cni", "ztunnel", "istiodRemote"];

/** Reads components. `where` names their source in messages. Throws a MeshError. */
export function componentsOf(components: Values, where: string): Components {
  let values: Values = {};
  let namespace = "";
  const gateways: Record<string, readonly ListedGateway[]> = {};
  const patches: ComponentPatch[] = [];
  for (const [name, given] of Object.entries(components)) {
    const path = `${where}: components.${name}`;
    if (given === null) continue;
    const standard = GATEWAY_LISTS[name];
    if (standard !== undefined) gateways[standard] = listedGateways(given, standard, path);
    else if (ABSENT_COMPONENTS.includes(name)) refuseIfEnabled(record(given, path), path);
    else if (name === "pilot" || name === "base") {
      const component = recordOf(given, FIELDS[name], path);
      if (name === "pilot") namespace = String(component.namespace ?? "");
      values = joined(values, { [name]: pick(component, name === "pilot" ? ["enabled", "hub", "tag"] : ["enabled"]) });
      patches.push({ component: name === "pilot" ? "Pilot" : "Base", resources: resourcesOf(component, path) });
    } else throw new MeshError("INSTALL_INVALID", `${path}: there is no such component`);
  }
  return { values, namespace, gateways, patches };
}

/** What gateways of a list come to: values of the chart by a name of their own, and changes of their objects. */
export interface GatewayPlan {
  readonly values: Values;
  readonly patches: readonly ComponentPatch[];
}

/**
 * Gateways of a list are like the one of the chart, with all that is said about that one. A list that does not name the chart's own
 * does without it.
 */
export function gatewayPlan(standard: string, listed: readonly ListedGateway[], model: Values): GatewayPlan {
  const { enabled: isAsked, ...like } = model;
  const planned = listed.map((gateway) => {
    const { name, namespace, values, resources } = gateway;
    const isOnly = listed.every((other) => other === gateway || other.name !== name);
    const key = isOnly ? name : `${name}.${namespace}`;
    const enabled = gateway.enabled || isAsked === true;
    const said = joined({ name, namespace, enabled }, values);
    const patch = { component: String(model.component), name, namespace, resources };
    return { key, enabled, patch, values: key === standard ? said : overlaid(like, said) };
  });
  const own = planned.some(({ key }) => key === standard) ? {} : { [standard]: { enabled: false } };
  return {
    values: { ...own, ...Object.fromEntries(planned.map(({ key, values }) => [key, values])) },
    patches: planned.filter(({ enabled }) => enabled).map(({ patch }) => patch),
  };
}

function listedGateways(list: unknown, standard: string, path: string): readonly ListedGateway[] {
  if (!Array.isArray(list)) throw new MeshError("INSTALL_INVALID", `${path}: a list is wanted`);
  const gateways = list.flatMap((item: unknown, i) => {
    if (item === null) return [];
    const at = `${path}[${i}]`;
    const gateway = recordOf(item, GATEWAY_FIELDS, at);
    const { name = standard, namespace = "", enabled = true, label } = gateway;
    const resources = resourcesOf(gateway, at);
    // Pods open the ports of their Service, so these are values; the rest is laid over the Service.
    const service = isRecord(resources.service) ? resources.service : {};
    const ports = Array.isArray(service.ports) && service.ports.length > 0 ? { ports: service.ports } : {};
    const labels = label === undefined || label === null ? {} : { labels: record(label, `${at}.label`) };
    const values = { ...pick(gateway, ["hub", "tag"]), ...labels, ...ports };
    const said = { name: String(name), namespace: String(namespace ?? ""), enabled: enabled === true };
    return [{ ...said, values, resources: { ...resources, ...withoutPorts(service) } }];
  });
  for (const { name, namespace } of gateways) {
    const same = gateways.filter((other) => other.name === name && other.namespace === namespace);
    if (same.length > 1) throw new MeshError("INSTALL_INVALID", `${path}: gateway "${name}" is there twice`);
  }
  return gateways;
}

function withoutPorts({ ports: _, ...service }: Values): Values {
  return Object.keys(service).length === 0 ? { service: {} } : { service };
}

function resourcesOf(component: Values, path: string): Values {
  const resources = record(component.k8s ?? {}, `${path}.k8s`);
  checkResources(resources, `${path}.k8s`);
  return resources;
}

function refuseIfEnabled({ enabled }: Values, path: string): void {
  if (enabled === true) throw new MeshError("INSTALL_INVALID", `${path}: is no part of this mesh`);
}

function pick(values: Values, names: readonly string[]): Values {
  return Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])));
}

/** A component with these fields alone: others would have no effect, and somebody meant something by them. */
function recordOf(value: unknown, fields: readonly string[], path: string): Values {
  const component = record(value, path);
  const other = Object.keys(component).find((name) => !fields.includes(name));
  if (other !== undefined) throw new MeshError("INSTALL_INVALID", `${path}.${other}: cannot be set here`);
  if (typeof (component.enabled ?? true) === "boolean") return component;
  throw new MeshError("INSTALL_INVALID", `${path}.enabled: a boolean is wanted`);
}

function record(value: unknown, path: string): Values {
  if (!isRecord(value)) throw new MeshError("INSTALL_INVALID", `${path}: an object is wanted`);
  return value;
}
