/** Inputs of Istio's own tests to the resources of a proxy: simulation, benchmarks, and generation of single kinds. */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { generate } from "../generate.ts";
import { type Case, type Group, readJson } from "../harness.ts";
import { kindCases, type NodeDump, once, recordedProxy } from "../recorded.ts";
import { homeOf, type RecordedInput, recordedMesh } from "../recorded-mesh.ts";
import { withoutType } from "../resources.ts";

interface RecordedCase {
  readonly name: string;
  readonly input?: RecordedInput;
  /** Benchmarks have one text with all objects. */
  readonly inputYAML?: string;
  readonly meshConfig?: object;
  readonly proxy: NodeDump;
  /** Of one kind, or a file for each kind. */
  readonly recorded: string | Readonly<Record<string, string>>;
  readonly kind?: string;
}

/** The names of kinds differ between the groups. */
const KINDS: Readonly<Record<string, string>> = {
  Cluster: "clusters",
  Listener: "listeners",
  RouteConfiguration: "routes",
  ClusterLoadAssignment: "endpoints",
};

export const xdsSimulation = recordedGroup("xds simulation", "simulation");
export const xdsBenchmarks = recordedGroup("xds benchmarks", "benchmarks");
export const xdsGeneration = recordedGroup("xds config generation", "configgen");

function recordedGroup(name: string, folderName: string): Group {
  return {
    name,
    cases: async (folder) => {
      const at = join(folder, "pilot/xds-golden", folderName);
      const cases: Case[] = [];
      for await (const file of glob("*.json", { cwd: at })) {
        const one = await readJson<RecordedCase>(at, file);
        if (one !== undefined) cases.push(...(await casesOf(at, one)));
      }
      return cases.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

async function casesOf(at: string, one: RecordedCase): Promise<readonly Case[]> {
  const { name, input, inputYAML, meshConfig, proxy, recorded, kind = "" } = one;
  const given: RecordedInput = input ?? {
    kubernetesYAML: inputYAML ?? "",
    ...(meshConfig && { meshConfig }),
  };
  const generated = once(() => {
    const snapshot = recordedMesh(given);
    return "leftOut" in snapshot
      ? snapshot
      : generate(snapshot, recordedProxy(proxy, homeOf(given, proxy.ipAddresses)));
  });
  const cases: Case[] = [];
  for (const [written, file] of Object.entries(typeof recorded === "string" ? { [kind]: recorded } : recorded)) {
    const resources = ((await readJson<readonly unknown[]>(at, file)) ?? []).map(withoutType);
    const named = KINDS[written] ?? written;
    cases.push(...kindCases({ prefix: `${name} ${named}`, kind: named, resources, generated }));
  }
  return cases;
}
