/** Draws how figures grow as one SVG, so that the plot in docs/ can be made again from bench/growth.json. */

/** What was measured at one size. */
export interface GrowthPoint {
  readonly size: number;
  /** Seconds of processor time until all proxies were in sync. */
  readonly connectCpu: number;
  /** Milliseconds of processor time of a change of endpoints, of a route, and of a new service. */
  readonly endpointCpu: number;
  readonly routeCpu: number;
  readonly serviceCpu: number;
}

/** One row of sizes, the others fixed. */
export interface GrowthSeries {
  readonly title: string;
  readonly unit: string;
  readonly points: readonly GrowthPoint[];
}

const PANEL = { width: 260, height: 180, left: 46, top: 44, gap: 24 };
const LINES = [
  { field: "connectCpu", label: "all in sync, s of CPU", color: "#1b6ca8" },
  { field: "endpointCpu", label: "endpoint change, 100 ms of CPU", color: "#2e8b57" },
  { field: "routeCpu", label: "route change, 100 ms of CPU", color: "#c0561b" },
  { field: "serviceCpu", label: "new service, 100 ms of CPU", color: "#7b3fa0" },
] as const;

/** All series beside each other, on one scale. */
export function growthPlot(series: readonly GrowthSeries[]): string {
  const top = Math.max(
    1,
    ...series.flatMap(({ points }) => points.flatMap((point) => LINES.map((line) => heightOf(point, line.field)))),
  );
  const width = PANEL.left + series.length * (PANEL.width + PANEL.gap);
  const height = PANEL.top + PANEL.height + 40 + LINES.length * 18;
  const panels = series.map((one, i) => panel(one, PANEL.left + i * (PANEL.width + PANEL.gap), top));
  const legend = LINES.map(({ label, color }, i) => {
    const y = PANEL.top + PANEL.height + 48 + i * 18;
    return `<line x1="${PANEL.left}" y1="${y}" x2="${PANEL.left + 24}" y2="${y}" stroke="${color}" stroke-width="2"/><text x="${PANEL.left + 32}" y="${y + 4}">${label}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="system-ui, sans-serif" font-size="12">
<title>How the cost of a push grows with proxies, services and views</title>
<rect width="100%" height="100%" fill="white"/>
${[...panels, ...legend].join("\n")}
</svg>
`;
}

function panel({ title, unit, points }: GrowthSeries, left: number, top: number): string {
  const bottom = PANEL.top + PANEL.height;
  const widest = Math.max(...points.map(({ size }) => size));
  const x = (size: number) => round(left + (size / widest) * PANEL.width);
  const y = (value: number) => round(bottom - (value / top) * PANEL.height);
  const axes = `<text x="${left}" y="${PANEL.top - 16}" font-weight="bold">${title}</text><path d="M${left} ${PANEL.top}V${bottom}H${left + PANEL.width}" fill="none" stroke="#888"/><text x="${left - 6}" y="${PANEL.top + 4}" text-anchor="end">${round(top)}</text><text x="${left - 6}" y="${bottom}" text-anchor="end">0</text>`;
  const sizes = points.map(({ size }) => `<text x="${x(size)}" y="${bottom + 16}" text-anchor="middle">${size}</text>`);
  const lines = LINES.map(({ field, color }) => {
    const path = points
      .map((point, i) => `${i === 0 ? "M" : "L"}${x(point.size)} ${y(heightOf(point, field))}`)
      .join("");
    return `<path d="${path}" fill="none" stroke="${color}" stroke-width="2"/>`;
  });
  const label = `<text x="${left + PANEL.width / 2}" y="${bottom + 30}" text-anchor="middle">${unit}</text>`;
  return [axes, ...sizes, ...lines, label].join("\n");
}

/** Changes in units of 100 ms, so that all lines fit one scale. */
function heightOf(point: GrowthPoint, field: (typeof LINES)[number]["field"]): number {
  return field === "connectCpu" ? point[field] : point[field] / 100;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
