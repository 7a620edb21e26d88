/** What is not wrong, but most likely not meant: said once, when the mesh has been read. */

import type { Service } from "#config/kinds/service/schema.ts";
import type { ServiceEntry } from "#config/kinds/service-entry/schema.ts";
import type { ConfigObject } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { isJob, type Member, workloadKey } from "../mesh/mesh.ts";
import { gatewayHints } from "./gateway-hints.ts";
import { routeHints } from "./route-hints.ts";

export interface HintInput {
  readonly members: readonly Member[];
  readonly objects: readonly ConfigObject[];
  /** The mesh file, and the line of each workload in it, by `name.namespace`. */
  readonly file: string;
  readonly lines: Readonly<Record<string, number>>;
}

/** One line for each. */
export function hintsOf({ members, objects, file, lines }: HintInput): readonly string[] {
  const services = selectorsOf(objects, "Service", (spec) => (spec as Service).selector);
  const entries = selectorsOf(objects, "ServiceEntry", (spec) => (spec as ServiceEntry).workloadSelector?.labels);
  const idle = services.filter((service) => !members.some((member) => selects(service, member)));
  const first = new Map(members.map((member) => [workloadKey(member), member]));
  const alone = [...first.values()].filter(
    (member) =>
      member.ports.length > 0 &&
      member.proxy !== "router" &&
      !isJob(member) &&
      ![...services, ...entries].some((service) => selects(service, member)),
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
    ...routeHints(objects),
  ];
}

interface Selector {
  readonly name: string;
  readonly namespace: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly origin: ConfigObject["origin"];
}

/** Of objects of one kind; those without a selector are left out: their endpoints are somebody else's business. */
function selectorsOf(
  objects: readonly ConfigObject[],
  wanted: string,
  selectorIn: (spec: unknown) => Readonly<Record<string, string>> | undefined,
): readonly Selector[] {
  return objects
    .filter(({ kind }) => kind === wanted)
    .map(({ metadata: { name, namespace }, spec, origin }) => ({
      name,
      namespace,
      selector: selectorIn(spec) ?? {},
      origin,
    }))
    .filter(({ selector }) => Object.keys(selector).length > 0);
}

function selects({ namespace, selector }: Selector, member: Member): boolean {
  return member.namespace === namespace && hasLabels(member.labels, selector);
}

function format(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? "none" : pairs.join(", ");
}
