/** The package as a library: `import { startMesh } from "mizzen/mesh"`. What it offers is declared in `api.ts`. */
import { basename, join, resolve } from "node:path";
import type * as api from "#standalone/library/api.ts";
import { openMeshBy, startMeshBy } from "#standalone/library/start-mesh.ts";

/** Meshes are started by the command of this package, or by that of another build. */
function mizzen(): readonly string[] {
  const here = import.meta.dirname;
  const root = basename(here) === "dist" ? resolve(here, "..") : resolve(here, "../..");
  return [process.env.MIZZEN || join(root, "bin/mizzen")];
}

export const startMesh: typeof api.startMesh = (folder, options = {}) =>
  startMeshBy({ ...options, folder, mizzen: mizzen() });

export const openMesh: typeof api.openMesh = (state) => openMeshBy(mizzen(), state);
