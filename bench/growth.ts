/**
 * Measures how the cost of the control plane grows with proxies, services and views, and draws it:
 *   node bench/growth.ts          measures, writes bench/growth.json and docs/control-plane-growth.svg
 *   node bench/growth.ts --draw   draws again what was measured
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ControlPlaneProcess } from "./control-plane-process.ts";
import { type GrowthPoint, type GrowthSeries, growthPlot } from "./growth-plot.ts";
import { runLoad } from "./load.ts";
import { MeshFolder, type MeshShape } from "./mesh-folder.ts";

const FIGURES = join(import.meta.dirname, "growth.json");
const PLOT = join(import.meta.dirname, "../docs/control-plane-growth.svg");
const SETTLE_MS = 1_000;

/** One thing grows, the others stay. */
const ROWS: readonly { title: string; unit: string; sizes: readonly number[]; shape: (size: number) => MeshShape }[] = [
  {
    title: "proxies, one view",
    unit: "proxies, 250 services",
    sizes: [10, 50, 100],
    shape: (proxies) => ({ proxies, services: 250, own: false }),
  },
  {
    title: "services",
    unit: "services, 20 proxies",
    sizes: [100, 250, 500],
    shape: (services) => ({ proxies: 20, services, own: false }),
  },
  {
    title: "views: two proxies each",
    unit: "views, 250 services",
    sizes: [5, 25, 50],
    shape: (views) => ({ proxies: 2 * views, services: 250, own: true }),
  },
];

async function measured(shape: MeshShape): Promise<Omit<GrowthPoint, "size">> {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-growth-"));
  try {
    const config = join(folder, "config");
    const mesh = new MeshFolder(config, shape);
    mesh.prepare();
    await using controlPlane = await ControlPlaneProcess.start(folder, config);
    const figures = await runLoad({ shape, mesh, controlPlane, rounds: 2, settleMs: SETTLE_MS });
    const { connectCpuSeconds: connectCpu, endpoint, route, service } = figures;
    return { connectCpu, endpointCpu: endpoint.cpuMs, routeCpu: route.cpuMs, serviceCpu: service.cpuMs };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measuredRows(): Promise<GrowthSeries[]> {
  const series: GrowthSeries[] = [];
  for (const { title, unit, sizes, shape } of ROWS) {
    const points: GrowthPoint[] = [];
    for (const size of sizes) {
      points.push({ size, ...(await measured(shape(size))) });
      console.log(title, points.at(-1));
    }
    series.push({ title, unit, points });
  }
  return series;
}

const series: GrowthSeries[] = process.argv.includes("--draw")
  ? JSON.parse(readFileSync(FIGURES, "utf8"))
  : await measuredRows();
writeFileSync(FIGURES, `${JSON.stringify(series, undefined, 2)}\n`);
writeFileSync(PLOT, growthPlot(series));
