/** A real Envoy as one more router: how long it takes itself to answer a change of routes. */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CANNOT_ISOLATE, type EnvoyNode, IsolatedEnvoy } from "../test/support/isolated-envoy.ts";
import type { ControlPlaneProcess } from "./control-plane-process.ts";
import type { MeshFolder } from "./mesh-folder.ts";
import { percentile } from "./percentile.ts";

const ID = "envoy.default";
const NODE: EnvoyNode = {
  id: `router~10.1.200.1~${ID}~default.svc.cluster.local`,
  cluster: "gateway.default",
  metadata: { NAMESPACE: "default", CLUSTER_ID: "Kubernetes", ISTIO_VERSION: "1.29.6", LABELS: { app: "gateway" } },
};
const PATIENCE_MS = 60_000;

/** Half of its answers came in this time after the response was sent; not a number where it cannot run. */
export async function envoyAnswerMs(
  controlPlane: ControlPlaneProcess,
  mesh: MeshFolder,
  rounds: number,
): Promise<number> {
  if (CANNOT_ISOLATE) return Number.NaN;
  const folder = mkdtempSync(join(tmpdir(), "mizzen-bench-envoy-"));
  const socket = join(folder, "ads");
  const [host, port] = controlPlane.address.split(":");
  const relay = createServer((down) => {
    const up = connect(Number(port), host);
    down.pipe(up).pipe(down);
    for (const end of [down, up]) end.on("error", () => undefined);
  }).listen(socket);
  await using _envoy = new IsolatedEnvoy(NODE, socket);
  try {
    const answers: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      // The first is that of its start.
      if (round > 0) mesh.putRoute(20, 2_000 + round);
      answers.push(await answered(controlPlane, round + 1));
    }
    return percentile(answers.slice(1), 0.5);
  } finally {
    relay.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Until it has answered so many responses with routes: how long the last answer took. */
async function answered(controlPlane: ControlPlaneProcess, count: number): Promise<number> {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    const answers = (await controlPlane.pushes(ID))
      .filter(({ type }) => type === "rds")
      .map((push) => push.answeredAfterMs);
    const last = answers.at(-1);
    if (answers.length >= count && last !== undefined) return last;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`Envoy did not answer ${count} responses with routes in ${PATIENCE_MS} ms`);
}
