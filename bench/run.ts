/**
 * Prints what a control plane with many sidecars costs, beside what Istio needed for the same:
 *   node bench/run.ts [--proxies 50] [--services 500] [--rounds 5] [--own]
 * Where the folder SHARED (default ../shared) has tools/xds-load.mjs, that program measures it too.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ControlPlaneProcess } from "./control-plane-process.ts";
import { type Figures, runLoad } from "./load.ts";
import { MeshFolder, type MeshShape } from "./mesh-folder.ts";
import { ISTIO_50_X_500 } from "./recorded.ts";
import { refereed } from "./referee.ts";
import { figuresTable } from "./table.ts";

const ROOT = join(import.meta.dirname, "..");
/** As long as the other program waits for a push to be over. */
const SETTLE_MS = 1_500;

interface Target {
  readonly mesh: MeshFolder;
  readonly config: string;
  readonly controlPlane: ControlPlaneProcess;
}

/** Each program gets a fresh mesh and a fresh control plane. */
async function measured(shape: MeshShape, measure: (target: Target) => Promise<Figures>): Promise<Figures> {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-bench-"));
  try {
    const config = join(folder, "config");
    const mesh = new MeshFolder(config, shape);
    mesh.prepare();
    await using controlPlane = await ControlPlaneProcess.start(folder, config);
    return await measure({ mesh, config, controlPlane });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: {
    proxies: { type: "string", default: "50" },
    services: { type: "string", default: "500" },
    rounds: { type: "string", default: "5" },
    own: { type: "boolean", default: false },
  },
});
const shape = { proxies: Number(values.proxies), services: Number(values.services), own: values.own };
const rounds = Number(values.rounds);
const program = join(process.env.SHARED ?? join(ROOT, "../shared"), "tools/xds-load.mjs");

const columns: [string, Figures][] = [];
if (shape.proxies === 50 && shape.services === 500 && !shape.own) columns.push(["Istio 1.29.6", ISTIO_50_X_500]);
const load = { shape, rounds, settleMs: SETTLE_MS };
columns.push(["Mizzen", await measured(shape, (target) => runLoad({ ...load, ...target }))]);
if (existsSync(program)) {
  const run = { shape, rounds };
  const byOther = (target: Target) => refereed({ program, modules: ROOT }, { ...run, ...target });
  columns.push(["Mizzen, by xds-load", await measured(shape, byOther)]);
}
const own = shape.own ? ", every two proxies behind a service of their own" : "";
console.log(`${shape.proxies} proxies, ${shape.services} services${own}\n\n${figuresTable(columns)}`);
if (!existsSync(program)) console.log(`\nnot measured by xds-load: ${program} does not exist`);
