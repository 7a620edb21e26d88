/** `mizzen doctor`: what this machine lacks for a mesh, and how to get it. */
import { dirname } from "node:path";
import { Command, Option } from "commander";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import { formatTable } from "#lib/print/table.ts";
import type { Finding } from "#standalone/doctor/finding.ts";
import { finish } from "../terminal/exit-codes.ts";
import { defaultStateFolder } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface DoctorFlags {
  readonly output?: OutputFormat;
}

export function doctorCommand(terminal: Terminal): Command {
  return new Command("doctor")
    .summary("say what this machine lacks for a mesh, and how to get it")
    .description(
      "Looks at rights, tools, kernel, Envoy, Node, disk, control groups, ports and addresses. What the kernel can do is tried in a network namespace that is gone a moment later. Exit code 0 when meshes can run here, 1 when they cannot.",
    )
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen doctor\n  mizzen doctor -o json | jq '.findings[] | select(.verdict != \"good\")'",
    )
    .action((flags: DoctorFlags) =>
      finish(terminal, async () => {
        const { diagnose } = await import("#standalone/doctor/diagnose.ts");
        const findings = await diagnose({
          uid: process.getuid?.() ?? -1,
          path: terminal.env.PATH ?? "",
          installed: terminal.installed,
          stateFolder: dirname(defaultStateFolder(terminal, "any")),
          nodeVersion: process.version,
        });
        const fit = findings.every(({ verdict }) => verdict !== "bad");
        terminal.print(
          flags.output === undefined ? text(findings, terminal) : formatOutput({ fit, findings }, flags.output),
        );
        return fit ? 0 : 1;
      }),
    );
}

const WORDS = { good: "ok", poor: "poor", bad: "MISSING" } as const;

function text(findings: readonly Finding[], { style }: Terminal): string {
  const colours = { good: style.good, poor: (word: string) => style.numbered(1, word), bad: style.bad };
  const rows = findings.map(({ check, verdict, found, remedy }) => [
    check,
    colours[verdict](WORDS[verdict]),
    remedy === "" ? found : `${found}: ${remedy}`,
  ]);
  const bad = findings.filter(({ verdict }) => verdict === "bad").length;
  const end = bad === 0 ? "meshes can run here" : `meshes cannot run here: ${bad} of ${findings.length} checks failed`;
  return `${formatTable([["CHECK", "RESULT", "WHAT"], ...rows])}\n${end}\n`;
}
