/** `mizzen shell`: a shell inside a workload. */
import { Command } from "commander";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, needRoot, withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";

export function shellCommand(terminal: Terminal): Command {
  return withChoice(new Command("shell"))
    .summary("open a shell inside a workload")
    .description(
      "Opens a shell in the network of a workload, as its app's user, with its variables, in its folder: what you call from there goes through its sidecar. Its exit code is passed on.",
    )
    .argument("<workload>", "name, or name.namespace; istiod is the control plane")
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen shell productpage-v1\n  echo 'curl -sS http://reviews:9080/reviews/0' | mizzen shell productpage-v1",
    )
    .action((workload: string, options: ChoiceOptions) =>
      finish(terminal, async () => {
        needRoot("run something in a mesh");
        const [{ findMember, findStatus }, { execIn, shellIn }] = await Promise.all([
          import("#standalone/commands/find-mesh.ts"),
          import("#standalone/commands/exec.ts"),
        ]);
        const { status } = await findStatus(choiceOf(options));
        const member = findMember(status, workload);
        return execIn(member.shell, shellIn(member.name), terminal.env.TERM);
      }),
    );
}
