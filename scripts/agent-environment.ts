/**
 * Writes docs/reference/agent-environment.md from the table that the agent reads its environment by.
 *
 *   node scripts/agent-environment.ts
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AGENT_ENVIRONMENT_SECTIONS } from "#agent/agent-environment.ts";
import type { Variable } from "#lib/env/env-table.ts";

const FILE = join(import.meta.dirname, "../docs/reference/agent-environment.md");

const HEAD = `# Environment of pilot-agent

Made by \`node scripts/agent-environment.ts\` from \`src/agent/agent-environment.ts\`: change it there.

Durations are Go's (\`1h30m\`, \`500ms\`), booleans \`true\` or \`false\` (also \`1\`, \`t\`, \`0\`, \`f\`). A wrong value is told with the
name of its variable, and the default holds; a number that is no port, and another \`COMPLIANCE_POLICY\` or
\`ECC_SIGNATURE_ALGORITHM\` than the page lists, end the agent. An empty variable counts as unset, unless it is text.
`;

/** The page as it should be. */
export function agentEnvironmentPage(): string {
  const sections = AGENT_ENVIRONMENT_SECTIONS.map(([title, rows]) => {
    const lines = Object.entries(rows).map(([name, variable]) => tableRow(name, variable));
    return `## ${title}\n\n| variable | type | default | meaning |\n| --- | --- | --- | --- |\n${lines.join("\n")}\n`;
  });
  return [HEAD, ...sections].join("\n");
}

/** True when the file is what the table gives. */
export function agentEnvironmentIsCurrent(): boolean {
  return readFileSync(FILE, "utf8") === agentEnvironmentPage();
}

function tableRow(name: string, { type, shown, meaning, prefix }: Variable<unknown>): string {
  const cells = [`\`${name}${prefix ? "*" : ""}\``, type, shown === "" ? "" : `\`${shown}\``, meaning];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

if (import.meta.main) writeFileSync(FILE, agentEnvironmentPage());
