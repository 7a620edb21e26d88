/** Commands about a mesh that is up: `down`, `exec`, `open`. */
import { resolve } from "node:path";
import { Command } from "commander";
import { EXIT_CODES_HELP, finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, defaultStateFolder, needRoot, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";

export function downCommand(terminal: Terminal): Command {
  return withChoice(new Command("down"))
    .summary("stop a mesh and remove everything of it")
    .description(
      "Stops a mesh and removes its processes, network namespaces, rules and sockets, also after a crash. Identity and logs stay in the state folder.",
    )
    .argument("[folder]", "folder of the mesh's mesh.yaml; not needed when only one mesh is up")
    .addHelpText("after", "\nExamples:\n  mizzen down\n  mizzen down samples/bookinfo\n  mizzen down --mesh bookinfo")
    .action((folder: string | undefined, options: ChoiceOptions) =>
      finish(terminal, () => runDown(terminal, folder, options)),
    );
}

async function runDown(terminal: Terminal, folder: string | undefined, options: ChoiceOptions): Promise<number> {
  needRoot("take a mesh down");
  const { down, meshToTakeDown } = await import("#standalone/commands/down.ts");
  const stateFolder = options.state === undefined ? undefined : resolve(options.state);
  const mesh = await meshToTakeDown({
    folder,
    choice: folder === undefined ? choiceOf(options) : { name: options.mesh, stateFolder },
    defaultStateFolder: (name) => defaultStateFolder(terminal, name),
  });
  if (mesh === undefined) {
    terminal.say("no mesh is up: nothing to do");
    return 0;
  }
  await down(mesh);
  terminal.say(`mesh "${mesh.name}" is down, nothing of it is left`);
  return 0;
}

export function execCommand(terminal: Terminal): Command {
  return withChoice(new Command("exec"))
    .summary("run a command inside a workload")
    .description(
      "Runs a command in the network of a workload, as its app's user, with its variables; its exit code is passed on.",
    )
    .argument("<workload>", "name, or name.namespace; istiod is the control plane")
    .argument("<command...>", "what to run")
    .passThroughOptions()
    .addHelpText(
      "after",
      `\nExamples:\n  mizzen exec sleep -- curl -sS http://httpbin:8000/headers\n  mizzen exec sleep sh\n\n${EXIT_CODES_HELP}`,
    )
    .action((workload: string, words: string[], options: ChoiceOptions, self: Command) => {
      const behind = flagsBehind(self).parse(words, { from: "user" });
      return finish(terminal, async () => {
        needRoot("run something in a mesh");
        const [{ findMember, findStatus }, { execIn }] = await Promise.all([
          import("#standalone/commands/find-mesh.ts"),
          import("#standalone/commands/exec.ts"),
        ]);
        const { status } = await findStatus(choiceOf({ ...options, ...behind.opts<ChoiceOptions>() }));
        return execIn(findMember(status, workload).shell, behind.args, terminal.env.TERM);
      });
    });
}

/** Reads what stands behind the workload: flags may, as with other commands; the command begins at the first word that is none. */
function flagsBehind(exec: Command): Command {
  const behind = withChoice(new Command(exec.name())).argument("<command...>").passThroughOptions();
  behind.helpInformation = () => exec.helpInformation();
  return behind.copyInheritedSettings(exec);
}

interface OpenOptions extends ChoiceOptions {
  readonly print?: boolean;
}

export function openCommand(terminal: Terminal): Command {
  return withChoice(new Command("open"))
    .summary("open a published address in the browser, or print it")
    .description(
      "Opens the address of a published port in the browser of this machine; prints it where there is none, or with --print.",
    )
    .argument("[workload]", "whose port; not needed when one publishes")
    .option("-p, --print", "print the address only")
    .addHelpText("after", "\nExamples:\n  mizzen open\n  curl $(mizzen open istio-ingressgateway --print)")
    .action((workload: string | undefined, options: OpenOptions) =>
      finish(terminal, async () => {
        needRoot("look at a mesh");
        const [{ findStatus }, { browserFor, publishedUrl }] = await Promise.all([
          import("#standalone/commands/find-mesh.ts"),
          import("#standalone/commands/open.ts"),
        ]);
        const { status } = await findStatus(choiceOf(options));
        const url = publishedUrl(status, workload);
        terminal.print(`${url}\n`);
        if (options.print !== true) await browserFor(terminal.env)?.(url);
        return 0;
      }),
    );
}
