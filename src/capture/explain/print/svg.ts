/** The plan as a drawing, for light and dark ground. */
import type { EndKind } from "../end.ts";
import type { Plan } from "../plan.ts";
import { type Box, type FlowDrawing, LINE, type Panel, panelsOf, WIDTH } from "./layout.ts";

const TOP = 84;

/** Light and dark colour of each kind of end. */
const COLOURS: Readonly<Record<EndKind, readonly [string, string]>> = {
  "envoy-inbound": ["#1f6feb", "#58a6ff"],
  "envoy-outbound": ["#8250df", "#bc8cff"],
  agent: ["#0b7a6f", "#3fd0bf"],
  pod: ["#1a7f37", "#4ac26b"],
  out: ["#6e7781", "#9aa4af"],
  dropped: ["#cf222e", "#ff7b72"],
};

export function drawSvg({ mode, dialect, families }: Plan): string {
  const panels = panelsOf(families, TOP);
  const last = panels.at(-1);
  const height = last === undefined ? TOP : last.y + last.height + 28;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">`,
    "<title>Traffic capture: which packet goes where, and why</title>",
    `<style>${styles()}</style>`,
    `<defs>${markers()}</defs>`,
    `<rect class="ground" width="${WIDTH}" height="${height}"/>`,
    '<text class="heading" x="32" y="42">Traffic capture</text>',
    `<text class="muted" x="32" y="64">mode ${mode}, by ${dialect}: which packet goes where, and why</text>`,
    ...panels.flatMap(drawPanel),
    "</svg>",
    "",
  ].join("\n");
}

function drawPanel({ title, y, height, whos, ends, flows }: Panel): readonly string[] {
  return [
    `<rect class="panel" x="16" y="${y}" width="${WIDTH - 32}" height="${height}" rx="12"/>`,
    `<text class="title" x="32" y="${y + 28}">${xml(title)}</text>`,
    ...flows.flatMap(drawLines),
    ...whos.map((box) => drawBox(box, "who")),
    ...flows.map(drawCard),
    ...ends.map(({ box, flow }) => drawBox(box, `end ${flow.end.kind}`)),
  ];
}

function drawLines({ flow, who, card, end }: FlowDrawing): readonly string[] {
  const { kind } = flow.end;
  return [
    `<path class="line ${kind}" d="${curve(who, card)}"/>`,
    `<path class="line ${kind}" d="${curve(card, end)}" marker-end="url(#to-${kind})"/>`,
  ];
}

function drawCard({ card, reasonFrom }: FlowDrawing): string {
  const lines = card.lines.map((line, index) => {
    const style = index < reasonFrom ? "what" : "muted";
    return `<text class="${style}" x="${card.x + 14}" y="${baseline(card, index)}">${xml(line)}</text>`;
  });
  return `${outline(card, "card")}${lines.join("")}`;
}

function drawBox(box: Box, style: string): string {
  const middle = box.x + box.width / 2;
  const lines = box.lines.map(
    (line, index) => `<text class="centred" x="${middle}" y="${baseline(box, index)}">${xml(line)}</text>`,
  );
  return `${outline(box, style)}${lines.join("")}`;
}

function outline({ x, y, width, height }: Box, style: string): string {
  return `<rect class="box ${style}" x="${x}" y="${y}" width="${width}" height="${height}" rx="8"/>`;
}

function baseline(box: Box, index: number): number {
  return box.y + 23 + index * LINE;
}

/** From the right edge of one box to the left edge of another. */
function curve(from: Box, to: Box): string {
  const [x1, y1] = [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = [to.x - 2, to.y + to.height / 2];
  const bend = (x2 - x1) / 2;
  return `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function markers(): string {
  return Object.keys(COLOURS)
    .map(
      (kind) =>
        `<marker id="to-${kind}" class="head ${kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker>`,
    )
    .join("");
}

function styles(): string {
  const variables = (index: 0 | 1) => Object.entries(COLOURS).map(([kind, pair]) => `--${kind}: ${pair[index]};`);
  const kinds = Object.keys(COLOURS).map(
    (kind) => `.line.${kind}, .end.${kind} { stroke: var(--${kind}); } .head.${kind} { fill: var(--${kind}); }`,
  );
  return [
    "",
    `svg { --ground: #ffffff; --panel: #f6f8fa; --box: #ffffff; --edge: #d0d7de; --ink: #1f2328; --soft: #59636e; ${variables(0).join(" ")} }`,
    `@media (prefers-color-scheme: dark) { svg { --ground: #0d1117; --panel: #151b23; --box: #0d1117; --edge: #3d444d; --ink: #f0f6fc; --soft: #9198a1; ${variables(1).join(" ")} } }`,
    "text { font: 13px system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif; fill: var(--ink); }",
    ".heading { font-size: 22px; font-weight: 600; } .title { font-size: 15px; font-weight: 600; }",
    ".what { font-weight: 500; } .muted { fill: var(--soft); } .centred { text-anchor: middle; }",
    ".ground { fill: var(--ground); } .panel { fill: var(--panel); stroke: var(--edge); }",
    ".box { fill: var(--box); stroke: var(--edge); } .end { stroke-width: 2; }",
    ".line { fill: none; stroke-width: 1.6; }",
    ...kinds,
    "",
  ].join("\n");
}

function xml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
