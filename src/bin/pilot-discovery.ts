/** The control plane's program. */
import { setFlagsFromString } from "node:v8";
import { Command } from "commander";
import { discoveryCommand } from "#control-plane/command/discovery-command.ts";
import { requestCommand } from "#control-plane/command/request-command.ts";
import { completionCommand } from "#lib/command/completion-command.ts";
import { ignoreMeaninglessSignals } from "#lib/command/ignore-signals.ts";
import { ignoreLostReaders } from "#lib/command/lost-readers.ts";
import { versionCommand } from "#lib/command/version-command.ts";

// The heap may grow by half before all of it is collected: V8 would do that after every few changes of the mesh, and a
// collection costs more than a change.
setFlagsFromString("--heap-growing-percent=50");

ignoreMeaninglessSignals();
ignoreLostReaders();

const HELP = `
Examples:
  pilot-discovery discovery --configDir config/ --meshConfig mesh.yaml    serve a folder of configuration
  pilot-discovery request GET /debug/syncz                                ask the control plane on this machine`;

const program = new Command("pilot-discovery")
  .description("The control plane of the mesh: discovery, certificates, debug pages.")
  .option("--vklog <level>", "verbosity of the Kubernetes client; accepted without effect")
  .addCommand(discoveryCommand(process.env, process.argv.slice(1)))
  .addCommand(requestCommand())
  .addCommand(versionCommand())
  .addHelpText("after", HELP);
program.addCommand(completionCommand(program));

program.parseAsync().catch((error: unknown) => {
  // A bug: let it be seen with its stack.
  console.error(error);
  process.exit(1);
});
