/** The plan as a Mermaid flowchart: who sends, what, and where it ends. */

import { FAMILY_NAMES } from "../../settings/family.ts";
import { type FamilyPlan, type Flow, GROUP_TITLES, type Plan } from "../plan.ts";
import { listOf } from "./plan-text.ts";

export function drawMermaid({ families }: Plan): string {
  const [first] = families;
  return first === undefined
    ? "flowchart LR\n"
    : ["flowchart LR", ...families.flatMap(familyLines), ...STYLES, ""].join("\n");
}

/** Colours that read on light and dark ground; text and lines are the viewer's own. */
const STYLES = [
  "  classDef envoy-inbound stroke:#2f7de1,stroke-width:2px",
  "  classDef envoy-outbound stroke:#8957e5,stroke-width:2px",
  "  classDef agent stroke:#0e9384,stroke-width:2px",
  "  classDef pod stroke:#3a9a48,stroke-width:2px",
  "  classDef out stroke:#8a8f98,stroke-width:2px",
  "  classDef dropped stroke:#d6424d,stroke-width:2px",
];

function familyLines({ family, groups }: FamilyPlan): readonly string[] {
  return groups
    .filter(({ flows }) => flows.length > 0)
    .flatMap(({ group, flows }) => {
      const id = `${family}_${group}`;
      const title = `${FAMILY_NAMES[family]}: ${GROUP_TITLES[group]}`;
      return [`  subgraph ${id}["${labelText(title)}"]`, "    direction LR", ...flowLines(flows, id), "  end"];
    });
}

/** Senders and ends are nodes that flows share. */
function flowLines(flows: readonly Flow[], id: string): readonly string[] {
  const whos = [...new Set(flows.map(({ who }) => who))];
  const ends = [...new Map(flows.map(({ end }) => [end.label, end])).values()];
  return [
    ...whos.map((who, index) => `    ${id}_w${index}(["${labelText(who)}"])`),
    ...ends.map(({ label, kind }, index) => `    ${id}_e${index}["${labelText(label)}"]:::${kind}`),
    ...flows.map(({ who, verb, objects, end, why }) => {
      const label = `${labelText(`${verb} ${listOf(objects)}`)}<br/><i>${labelText(why)}</i>`;
      const to = ends.findIndex((one) => one.label === end.label);
      return `    ${id}_w${whos.indexOf(who)} -- "${label}" --> ${id}_e${to}`;
    }),
  ];
}

/** Quotes would end a label, and brackets begin an element. */
function labelText(text: string): string {
  return text.replaceAll('"', "#quot;").replaceAll("<", "#lt;").replaceAll(">", "#gt;");
}
