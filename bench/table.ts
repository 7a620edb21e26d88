import type { ChangeFigures, Figures } from "./load.ts";

type Row = readonly [label: string, cell: (figures: Figures) => string];

const ROWS: readonly Row[] = [
  ["all proxies in sync after connecting", ({ connectSeconds }) => `${number(connectSeconds, 2)} s`],
  ["  CPU", ({ connectCpuSeconds }) => `${number(connectCpuSeconds, 2)} s`],
  ["  bytes", ({ connectMegabytes }) => `${number(connectMegabytes)} MB`],
  ...changeRows("endpoint change", ({ endpoint }) => endpoint),
  ...changeRows("route change", ({ route }) => route),
  ["  answer of a real Envoy, half of them", ({ envoyAnswerMs = Number.NaN }) => `${number(envoyAnswerMs)} ms`],
  ...changeRows("new service", ({ service }) => service),
  ["private memory", ({ privateMegabytes }) => `${number(privateMegabytes)} MB`],
  ["delay of the event loop, 99 of 100", ({ loopDelayMs = Number.NaN }) => `${number(loopDelayMs)} ms`],
  ["a flood of endpoint changes, each second", ({ churn }) => number(churn?.changesPerSecond ?? Number.NaN)],
  ["  CPU of a second", ({ churn }) => `${number(churn?.cpu ?? Number.NaN, 2)} s`],
  ["  delay of the event loop, 99 of 100", ({ churn }) => `${number(churn?.loopDelayMs ?? Number.NaN)} ms`],
  ["  until all have the last one", ({ churn }) => `${number(churn?.lastMs ?? Number.NaN)} ms`],
];

/** Figures side by side; what somebody did not measure is a dash. */
export function figuresTable(columns: readonly (readonly [title: string, figures: Figures])[]): string {
  const head = ["", ...columns.map(([title]) => title)];
  const body = ROWS.map(([label, cell]) => [
    label,
    ...columns.map(([, figures]) => cell(figures).replace(/^- .*/, "-")),
  ]);
  const lines = [head, ...body];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line.map((text, column) => (column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0))),
    )
    .map((line) => line.join("  "))
    .join("\n");
}

function changeRows(label: string, of: (figures: Figures) => ChangeFigures): readonly Row[] {
  return [
    [`${label}, half of the proxies have it`, (figures) => `${number(of(figures).p50Ms)} ms`],
    ["  99 of 100 have it", (figures) => `${number(of(figures).p99Ms)} ms`],
    ["  CPU", (figures) => `${number(of(figures).cpuMs)} ms`],
    ["  bytes per proxy", (figures) => `${number(of(figures).kilobytesPerProxy, 1)} KB`],
  ];
}

function number(value: number, digits = 0): string {
  return Number.isNaN(value) ? "-" : value.toFixed(digits);
}
