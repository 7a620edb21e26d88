/** `mizzen apply` and `mizzen delete`: configuration of a mesh that is up, for as long as it is. */
import { Command } from "commander";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, needRoot, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";

const FILES = "files or folders with objects; - is the input";

export function applyCommand(terminal: Terminal): Command {
  return withChoice(new Command("apply"))
    .summary("add Kubernetes and Istio objects to a mesh that is up")
    .description(
      "Adds objects to the configuration of a mesh, or replaces those that were applied before, and returns when all proxies have them. They are gone when the mesh is. Objects in the mesh's own files are changed there: the files are watched.",
    )
    .argument("<files...>", FILES)
    .addHelpText("after", "\nExamples:\n  mizzen apply samples/bookinfo/networking/virtual-service-reviews-80-20.yaml")
    .action((files: string[], options: ChoiceOptions) => run(terminal, "apply", { ...options, files }));
}

export function deleteCommand(terminal: Terminal): Command {
  return withChoice(new Command("delete"))
    .summary("take objects back that were applied")
    .description("Removes objects that were applied to a mesh; only their kind, name and namespace count.")
    .argument("<files...>", FILES)
    .addHelpText("after", "\nExamples:\n  mizzen delete samples/bookinfo/networking/virtual-service-reviews-80-20.yaml")
    .action((files: string[], options: ChoiceOptions) => run(terminal, "delete", { ...options, files }));
}

interface Request extends ChoiceOptions {
  readonly files: readonly string[];
}

function run(terminal: Terminal, verb: "apply" | "delete", request: Request): Promise<void> {
  return finish(terminal, async () => {
    needRoot("change a mesh");
    const [{ findMesh }, { applyConfig, deleteConfig, readConfigTexts }] = await Promise.all([
      import("#standalone/commands/find-mesh.ts"),
      import("#standalone/commands/apply.ts"),
    ]);
    const { stateFolder } = await findMesh(choiceOf(request));
    const texts = await readConfigTexts(request.files, process.stdin);
    const changes = await (verb === "apply" ? applyConfig : deleteConfig)(stateFolder, texts);
    terminal.print(changes.map((line) => `${line}\n`).join(""));
    return 0;
  });
}
