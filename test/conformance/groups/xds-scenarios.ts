/**
 * Clusters with configuration to the resources of their proxies. Every recorded resource is a case, and for each kind one
 * more: that there are no others.
 */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { type MeshConfig, parseMeshConfig } from "#config/mesh/mesh-config.ts";
import { generate } from "../generate.ts";
import { type Case, type Group, readJson } from "../harness.ts";
import { type KubernetesObject, kubernetesMesh } from "../kubernetes-mesh.ts";
import { kindCases, type NodeDump, once, recordedProxy } from "../recorded.ts";
import { withoutType } from "../resources.ts";

interface Scenario {
  readonly name: string;
  readonly input: {
    readonly kubernetes: string;
    readonly configs: readonly KubernetesObject[];
    readonly meshConfigYAML: string;
  };
  readonly proxies: Readonly<Record<string, RecordedProxy>>;
}

interface RecordedProxy {
  readonly node: NodeDump;
  /** Files of resources by kind. */
  readonly recorded: Readonly<Record<string, string>>;
}

export const xdsScenarios: Group = {
  name: "xds scenarios",
  cases: async (folder) => {
    const at = join(folder, "pilot/xds-golden/scenarios");
    const cases: Case[] = [];
    for await (const file of glob("*.json", { cwd: at })) {
      const scenario = await readJson<Scenario>(at, file);
      if (scenario !== undefined) cases.push(...(await scenarioCases(at, scenario)));
    }
    return cases;
  },
};

async function scenarioCases(at: string, scenario: Scenario): Promise<readonly Case[]> {
  const kubernetes = (await readJson<readonly KubernetesObject[]>(at, scenario.input.kubernetes)) ?? [];
  const mesh = once(() =>
    kubernetesMesh({
      objects: [...kubernetes, ...scenario.input.configs],
      mesh: meshOf(scenario.input.meshConfigYAML),
    }),
  );
  const cases: Case[] = [];
  for (const [name, { node, recorded }] of Object.entries(scenario.proxies)) {
    const generated = once(() => {
      const snapshot = mesh();
      return "leftOut" in snapshot ? snapshot : generate(snapshot, recordedProxy(node));
    });
    for (const [kind, file] of Object.entries(recorded)) {
      const resources = ((await readJson<readonly unknown[]>(at, file)) ?? []).map(withoutType);
      cases.push(...kindCases({ prefix: `${scenario.name} ${name} ${kind}`, kind, resources, generated }));
    }
  }
  return cases;
}

function meshOf(yaml: string): MeshConfig {
  const mesh = parseMeshConfig(yaml);
  if (mesh.value === undefined) throw new Error(JSON.stringify(mesh.problems));
  return mesh.value;
}
