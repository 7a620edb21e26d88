/**
 * Prints what Mizzen costs, with the aim beside each figure:
 *   node bench/run.ts [control-plane] [agent] [injection] [kubernetes] [mesh] [--proxies 50] [--services 500] [--rounds 5] [--own [--namespaces 20]] [--routes 3000] [--tls]
 * Without a name all sections are run; `mesh` needs root. Where the folder SHARED (default ../shared) has
 * tools/xds-load.mjs, that program measures the control plane too; with ISTIOD=/path/to/pilot-discovery calls are compared
 * with those under the configuration of a real one, and with ISTIO_AGENT=/path/to/pilot-agent and
 * ISTIO_AGENT_TEMPLATE=/path/to/envoy_bootstrap.json our agent with a real one, in turns.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { agentFigures } from "./sections/agent.ts";
import { controlPlaneFigures } from "./sections/control-plane.ts";
import { aimsTable, type Figure } from "./sections/figures.ts";
import { injectionFigures } from "./sections/injection.ts";
import { kubernetesFigures } from "./sections/kubernetes.ts";
import { meshFigures } from "./sections/mesh.ts";

// A full collection of this program takes both cores from what it measures, and would be counted as the other's: a heap that
// may become five times as large is hardly ever collected.
setFlagsFromString("--heap-growing-percent=400");

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    proxies: { type: "string", default: "50" },
    services: { type: "string", default: "500" },
    rounds: { type: "string", default: "5" },
    own: { type: "boolean", default: false },
    namespaces: { type: "string", default: "1" },
    routes: { type: "string" },
    tls: { type: "boolean", default: false },
  },
});
const {
  SHARED = join(import.meta.dirname, "../../shared"),
  ISTIOD,
  ISTIO_AGENT,
  ISTIO_AGENT_TEMPLATE = "",
} = process.env;
const sections: Readonly<Record<string, () => Promise<readonly Figure[]>>> = {
  "control-plane": () =>
    controlPlaneFigures({
      shape: {
        proxies: Number(values.proxies),
        services: Number(values.services),
        own: values.own,
        namespaces: Number(values.namespaces),
        ...(values.routes !== undefined && { routes: Number(values.routes) }),
      },
      isSecure: values.tls,
      rounds: Number(values.rounds),
      program: join(SHARED, "tools/xds-load.mjs"),
      istiod: ISTIOD || undefined,
    }),
  agent: () =>
    agentFigures(ISTIO_AGENT ? { program: ISTIO_AGENT, bootstrapTemplate: ISTIO_AGENT_TEMPLATE } : undefined),
  injection: injectionFigures,
  kubernetes: kubernetesFigures,
  mesh: async () => {
    if (process.getuid?.() === 0) return meshFigures(ISTIOD || undefined);
    console.log("mesh: not measured, it needs root\n");
    return [];
  },
};
const unknown = positionals.find((name) => sections[name] === undefined);
if (unknown !== undefined) {
  console.error(`There is no section "${unknown}": choose from ${Object.keys(sections).join(", ")}`);
  process.exit(1);
}
const figures: Figure[] = [];
for (const [name, measure] of Object.entries(sections)) {
  if (positionals.length === 0 || positionals.includes(name)) figures.push(...(await measure()));
}
console.log(aimsTable(figures));
