/**
 * Where things of the drawing are. Each group is a panel of three columns, with a line from left to right per flow:
 *
 *   who sends  ──  what, and why  ──>  where it ends
 */
import { FAMILY_NAMES } from "../../settings/family.ts";
import { type FamilyPlan, type Flow, GROUP_TITLES } from "../plan.ts";
import { listOf } from "./plan-text.ts";

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly lines: readonly string[];
}

export interface FlowDrawing {
  readonly flow: Flow;
  readonly card: Box;
  /** Lines of the card from this one on are the reason. */
  readonly reasonFrom: number;
  readonly who: Box;
  readonly end: Box;
}

export interface Panel {
  readonly title: string;
  readonly y: number;
  readonly height: number;
  readonly whos: readonly Box[];
  readonly ends: readonly { readonly box: Box; readonly flow: Flow }[];
  readonly flows: readonly FlowDrawing[];
}

export const WIDTH = 1120;
export const LINE = 18;
const PADDING = 10;
const GAP = 12;
const TITLE = 44;
const COLUMNS = {
  who: { x: 32, width: 190, letters: 26 },
  card: { x: 278, width: 490, letters: 62 },
  end: { x: 868, width: 220, letters: 30 },
};

/** Panels of all families from `top` downwards. */
export function panelsOf(families: readonly FamilyPlan[], top: number): readonly Panel[] {
  const panels: Panel[] = [];
  let y = top;
  for (const { family, groups } of families) {
    for (const { group, flows } of groups) {
      if (flows.length === 0) continue;
      const panel = panelOf(`${FAMILY_NAMES[family]}  ·  ${GROUP_TITLES[group]}`, flows, y);
      panels.push(panel);
      y += panel.height + GAP * 2;
    }
  }
  return panels;
}

function panelOf(title: string, flows: readonly Flow[], y: number): Panel {
  const cards = cardsOf(flows, y + TITLE);
  const whos = column(
    "who",
    keyed(flows, cards, ({ who }) => who),
  );
  const ends = column(
    "end",
    keyed(flows, cards, ({ end }) => end.label),
  );
  const boxes = [...cards.map(({ box }) => box), ...whos.values(), ...ends.values()];
  const bottom = Math.max(...boxes.map((box) => box.y + box.height));
  return {
    title,
    y,
    height: bottom - y + GAP + PADDING,
    whos: [...whos.values()],
    ends: [...ends].flatMap(([label, box]) => {
      const flow = flows.find(({ end }) => end.label === label);
      return flow === undefined ? [] : [{ box, flow }];
    }),
    flows: cards.flatMap(({ flow, box, reasonFrom }) => {
      const who = whos.get(flow.who);
      const end = ends.get(flow.end.label);
      return who === undefined || end === undefined ? [] : [{ flow, card: box, reasonFrom, who, end }];
    }),
  };
}

interface Card {
  readonly flow: Flow;
  readonly box: Box;
  readonly reasonFrom: number;
}

function cardsOf(flows: readonly Flow[], top: number): readonly Card[] {
  const { x, width, letters } = COLUMNS.card;
  let y = top;
  return flows.map((flow) => {
    const what = wrapped(`${flow.verb} ${listOf(flow.objects)}`, letters);
    const lines = [...what, ...wrapped(flow.why, letters)];
    const box = { x, y, width, height: lines.length * LINE + PADDING * 2, lines };
    y += box.height + GAP;
    return { flow, box, reasonFrom: what.length };
  });
}

/** Things that several flows share, with the middle of their cards. */
function keyed(
  flows: readonly Flow[],
  cards: readonly Card[],
  key: (flow: Flow) => string,
): ReadonlyMap<string, number> {
  const keys = [...new Set(flows.map(key))];
  const middles = keys.map((one): [string, number] => {
    const own = cards.filter(({ flow }) => key(flow) === one).map(({ box }) => box.y + box.height / 2);
    return [one, own.reduce((sum, middle) => sum + middle, 0) / own.length];
  });
  return new Map(middles.sort(([, a], [, b]) => a - b));
}

/** Boxes at their wanted middles, pushed down where they would overlap. */
function column(name: "who" | "end", middles: ReadonlyMap<string, number>): ReadonlyMap<string, Box> {
  const { x, width, letters } = COLUMNS[name];
  const boxes = new Map<string, Box>();
  let free = 0;
  for (const [text, middle] of middles) {
    const lines = wrapped(text, letters);
    const height = lines.length * LINE + PADDING * 2;
    const y = Math.max(free, middle - height / 2);
    boxes.set(text, { x, y, width, height, lines });
    free = y + height + GAP;
  }
  return boxes;
}

/** Words in lines of at most so many letters. */
function wrapped(text: string, letters: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < letters) lines.splice(-1, 1, `${last} ${word}`);
    else lines.push(word);
  }
  return lines;
}
