/**
 * Writes the reference pages about environment variables from the tables by which the programs read them.
 *
 *   node scripts/environment-pages.ts
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT_ENVIRONMENT_SECTIONS } from "#agent/agent-environment.ts";
import { DISCOVERY_ENVIRONMENT_SECTIONS } from "#control-plane/settings/environment.ts";
import type { EnvTable, Variable } from "#lib/env/env-table.ts";

interface Page {
  readonly file: string;
  readonly head: string;
  readonly sections: readonly (readonly [title: string, rows: EnvTable])[];
}

const ROOT = join(import.meta.dirname, "..");
const VALUES = "Durations are Go's (`1h30m`, `500ms`), booleans `true` or `false` (also `1`, `t`, `0`, `f`).";

const PAGES: readonly Page[] = [
  {
    file: "docs/reference/agent-environment.md",
    head: `# Environment of pilot-agent

Made by \`node scripts/environment-pages.ts\` from \`src/agent/agent-environment.ts\`: change it there.

${VALUES} The agent warns of an invalid value and uses the default; a number that is no port, and another \`COMPLIANCE_POLICY\` or
\`ECC_SIGNATURE_ALGORITHM\` than the page lists, end the agent. An empty variable counts as unset, unless it is text.
`,
    sections: AGENT_ENVIRONMENT_SECTIONS,
  },
  {
    file: "docs/reference/discovery-environment.md",
    head: `# Environment of pilot-discovery

Made by \`node scripts/environment-pages.ts\` from \`src/control-plane/settings/environment.ts\`: change it there.

${VALUES} The control plane warns of an invalid boolean, number or duration and uses the default. It does not start with another
invalid value. An empty variable counts as unset. [pilot-discovery.md](pilot-discovery.md) describes flags, listeners and pages.
`,
    sections: DISCOVERY_ENVIRONMENT_SECTIONS,
  },
];

/** Pages that are not what the tables give. */
export function outdatedEnvironmentPages(): readonly string[] {
  return PAGES.filter((page) => readFileSync(join(ROOT, page.file), "utf8") !== textOf(page)).map(({ file }) => file);
}

function textOf({ head, sections }: Page): string {
  const tables = sections.map(([title, rows]) => {
    const lines = Object.entries(rows).map(([name, variable]) => tableRow(name, variable));
    return `## ${title}\n\n| variable | type | default | meaning |\n| --- | --- | --- | --- |\n${lines.join("\n")}\n`;
  });
  return [head, ...tables].join("\n");
}

function tableRow(name: string, { type, shown, meaning, prefix }: Variable<unknown>): string {
  const cells = [`\`${name}${prefix ? "*" : ""}\``, type, shown === "" ? "" : `\`${shown}\``, meaning];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

if (import.meta.main) for (const page of PAGES) writeFileSync(join(ROOT, page.file), textOf(page));
