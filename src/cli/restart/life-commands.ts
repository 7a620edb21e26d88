/** Commands that change a mesh while it runs: `restart`, `stop`, `start`, `scale`; and `attach`, which stays with it. */
import { Command, InvalidArgumentError } from "commander";
import type { ControlRequest } from "#standalone/control/protocol.ts";
import { finish } from "../terminal/exit-codes.ts";
import { type ChoiceOptions, choiceOf, needRoot, withChoice } from "../terminal/options.ts";
import { sayChanges } from "../terminal/say-changes.ts";
import type { Terminal } from "../terminal/terminal.ts";

const WORKLOAD = "name, or name.namespace: a workload with all its replicas, one replica, a gateway, or istiod";

interface Verb {
  readonly kind: "restart" | "stop" | "start";
  readonly summary: string;
  readonly description: string;
}

const VERBS: readonly Verb[] = [
  {
    kind: "restart",
    summary: "restart a workload",
    description:
      "Ends app and proxy of a workload and starts them again, one replica after the other, each when the one before is ready.",
  },
  {
    kind: "stop",
    summary: "stop a workload",
    description: "Ends app and proxy of a workload. It stays in the mesh, gets no traffic, and can be started again.",
  },
  {
    kind: "start",
    summary: "start a workload that was stopped, or a job once more",
    description: "Starts a workload.",
  },
];

/** `restart`, `stop` and `start`. */
export function workloadCommands(terminal: Terminal): readonly Command[] {
  return VERBS.map(({ kind, summary, description }) =>
    withChoice(new Command(kind))
      .summary(summary)
      .description(description)
      .argument("<workload>", WORKLOAD)
      .addHelpText("after", `\nExamples:\n  mizzen ${kind} reviews-v1\n  mizzen ${kind} istiod`)
      .action((workload: string, options: ChoiceOptions) => change(terminal, options, { kind, workload })),
  );
}

export function scaleCommand(terminal: Terminal): Command {
  return withChoice(new Command("scale"))
    .summary("give a workload more or fewer replicas")
    .description(
      "Gives a workload this many replicas until the next `mizzen up`; those that are there go on as they are.",
    )
    .argument("<workload>", "name, or name.namespace")
    .argument("<replicas>", "from 0 to 100", wholeNumber)
    .addHelpText("after", "\nExamples:\n  mizzen scale reviews-v1 3")
    .action((workload: string, replicas: number, options: ChoiceOptions) =>
      change(terminal, options, { kind: "scale", workload, replicas }),
    );
}

export function attachCommand(terminal: Terminal): Command {
  return withChoice(new Command("attach"))
    .summary("stay with a mesh that runs in the background")
    .description(
      "Shows what happens in a mesh until it ends, and exits with the exit code of its jobs. Ctrl-C detaches: the mesh goes on.",
    )
    .addHelpText("after", "\nExamples:\n  mizzen up samples/httpbin --detach && mizzen attach")
    .action((options: ChoiceOptions) => finish(terminal, () => runAttach(terminal, options)));
}

async function runAttach(terminal: Terminal, options: ChoiceOptions): Promise<number> {
  needRoot("attach to a mesh");
  const [{ findMesh }, { askMesh }] = await Promise.all([
    import("#standalone/commands/find-mesh.ts"),
    import("#standalone/control/ask.ts"),
  ]);
  const mesh = await findMesh(choiceOf(options));
  const detach = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => detach.abort());
  try {
    const watch = { kind: "watch" } as const;
    const onProgress = (line: string) => {
      if (line === "") terminal.say(`attached to mesh "${mesh.name}"; Ctrl-C detaches, and the mesh goes on`);
      else terminal.print(`${new Date().toISOString().slice(11, 19)}  ${line}\n`);
    };
    const { code } = await askMesh(mesh.stateFolder, watch, { onProgress, signal: detach.signal });
    terminal.say(`mesh "${mesh.name}" has ended`);
    return code;
  } catch (error) {
    if (!detach.signal.aborted) throw error;
    terminal.say("detached");
    return 0;
  }
}

function change(
  terminal: Terminal,
  options: ChoiceOptions,
  request: Extract<ControlRequest, { readonly workload: string }>,
): Promise<void> {
  return finish(terminal, async () => {
    needRoot("change a mesh");
    const [{ findMesh }, { askMesh }] = await Promise.all([
      import("#standalone/commands/find-mesh.ts"),
      import("#standalone/control/ask.ts"),
    ]);
    const { stateFolder } = await findMesh(choiceOf(options));
    const summary = await askMesh(stateFolder, request, { onProgress: (line) => terminal.say(line) });
    sayChanges(terminal, summary);
    return 0;
  });
}

function wholeNumber(text: string): number {
  if (!/^\d{1,4}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
}
