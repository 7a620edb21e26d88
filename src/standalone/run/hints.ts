/** What is not wrong, but most likely not meant: said once, when the mesh has been read. */
import type { ConfigObject } from "#config/config-object.ts";
import { hasLabels } from "#model/labels.ts";
import { isJob, type Member, workloadKey } from "../mesh/mesh.ts";
import { gatewayHints } from "./gateway-hints.ts";

export interface HintInput {
  readonly members: readonly Member[];
  readonly objects: readonly ConfigObject[];
  /** The mesh file, and the line of each workload in it, by `name.namespace`. */
  readonly file: string;
  readonly lines: Readonly<Record<string, number>>;
}

/** One line for each. */
export function hintsOf({ members, objects, file, lines }: HintInput): readonly string[] {
  const services = objects
    .filter(({ kind }) => kind === "Service")
    .map(selectorOf)
    .filter((found) => found !== undefined);
  const idle = services.filter((service) => !members.some((member) => selects(service, member)));
  const first = new Map(members.map((member) => [workloadKey(member), member]));
  const alone = [...first.values()].filter(
    (member) =>
      member.ports.length > 0 &&
      member.proxy !== "router" &&
      !isJob(member) &&
      !services.some((service) => selects(service, member)),
  );
  return [
    ...idle.map(
      ({ name, namespace, selector, origin }) =>
        `${origin === undefined ? "" : `${origin.file}:${origin.line}: `}Service "${name}" in namespace "${namespace}" selects no workload (${format(selector)}): calls to it fail; correct spec.selector, or the labels of a workload`,
    ),
    ...alone.map(
      (member) =>
        `${file}:${lines[workloadKey(member)] ?? 1}: workload "${member.workload}" is selected by no Service in namespace "${member.namespace}" (labels ${format(member.labels)}): nobody can call it by a name; add a Service, or correct the labels`,
    ),
    ...gatewayHints(members, objects),
  ];
}

interface Selector {
  readonly name: string;
  readonly namespace: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly origin: ConfigObject["origin"];
}

/** Undefined for a service without a selector: its endpoints are somebody else's business. */
function selectorOf({ metadata, spec, origin }: ConfigObject): Selector | undefined {
  const raw = typeof spec === "object" && spec !== null && "selector" in spec ? spec.selector : undefined;
  if (typeof raw !== "object" || raw === null || Object.keys(raw).length === 0) return undefined;
  const selector = Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, String(value)]));
  return { name: metadata.name, namespace: metadata.namespace, selector, origin };
}

function selects({ namespace, selector }: Selector, member: Member): boolean {
  return member.namespace === namespace && hasLabels(member.labels, selector);
}

function format(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "none" : pairs.join(", ");
}
