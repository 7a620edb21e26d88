/** `mizzen ps`: what runs in a mesh, once or live. */
import { setTimeout as delay } from "node:timers/promises";
import { Command, Option } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import type { MeshDetails } from "#standalone/control/protocol.ts";
import type { MeshStatus } from "#standalone/status/status.ts";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, needRoot, withChoice } from "../terminal/options.ts";
import { CLEAR, type Terminal } from "../terminal/terminal.ts";
import { formatLive } from "./live-table.ts";
import { rowsOf } from "./member-rows.ts";
import { formatMembers, formatPublished } from "./mesh-table.ts";

interface PsOptions extends ChoiceOptions {
  readonly output?: OutputFormat;
  readonly watch?: boolean;
}

export function psCommand(terminal: Terminal): Command {
  return withChoice(new Command("ps"))
    .summary("show the workloads of a mesh")
    .description(
      "Shows the control plane, gateways and workloads of a mesh: where they are, whether they are ready, restarts; with -w live, with certificates, pushes and NACKs.",
    )
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .option("-w, --watch", "go on, with certificate expiry, last push and NACKs of each proxy")
    .addHelpText("after", "\nExamples:\n  mizzen ps -w\n  mizzen ps -o json | jq '.members[] | select(.ready | not)'")
    .action((options: PsOptions) =>
      finish(terminal, async () => {
        needRoot("look at a mesh");
        return options.watch === true ? watch(terminal, options) : show(terminal, options);
      }),
    );
}

async function show(terminal: Terminal, options: PsOptions): Promise<number> {
  const { findStatus } = await import("#standalone/commands/find-mesh.ts");
  const { status, watched } = await findStatus(choiceOf(options));
  terminal.print(options.output === undefined ? psText(status, terminal) : formatOutput(status, options.output));
  for (const note of status.notes) terminal.say(`note: ${note}`);
  if (!watched)
    terminal.say(
      `the runner of mesh "${status.name}" is gone: nobody watches over it; run \`mizzen up\` or \`mizzen down\``,
    );
  return 0;
}

const PERIOD_MS = 1000;

/** Prints the table anew every second until the mesh ends or somebody presses Ctrl-C. */
async function watch(terminal: Terminal, options: PsOptions): Promise<number> {
  const [{ findMesh }, { connectToMesh }] = await Promise.all([
    import("#standalone/commands/find-mesh.ts"),
    import("#standalone/control/ask.ts"),
  ]);
  const mesh = await findMesh(choiceOf(options));
  using connection = await connectToMesh(mesh.stateFolder);
  for (;;) {
    try {
      const details = await connection.ask({ kind: "details" });
      terminal.print(`${terminal.isScreen ? CLEAR : ""}${liveText(details, terminal)}\n`);
    } catch (error) {
      if (!(error instanceof MeshError && error.code === "RUNNER_LOST")) throw error;
      terminal.say(`mesh "${mesh.name}" has ended`);
      return 0;
    }
    await delay(PERIOD_MS);
  }
}

function liveText({ status, proxies }: MeshDetails, { style }: Terminal): string {
  const rows = rowsOf(status).map((row) => {
    const told = proxies[`${row.name}.${row.namespace}`];
    const { certificateEnds, lastPush, rejected } = told ?? {};
    return { ...row, certificateEnds, lastPush, rejected };
  });
  return formatLive(rows, style, Date.now());
}

function psText(status: MeshStatus, { style }: Terminal): string {
  const published = formatPublished(status.published, style);
  return `${formatMembers(rowsOf(status), style, true)}${published === "" ? "" : `\n${published}`}`;
}
