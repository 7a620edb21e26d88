/** `mizzen pushes`: what the control plane sent, and why. */
import { setTimeout as delay } from "node:timers/promises";
import { Command, Option } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import { controlPlanePage, type PageOptions } from "../mesh/control-plane-page.ts";
import { finish } from "../terminal/exit-codes.ts";
import { withChoice } from "../terminal/options.ts";
import { CLEAR, type Terminal } from "../terminal/terminal.ts";
import { formatPushes, type JournalEntry } from "./pushes-table.ts";

interface PushesOptions extends PageOptions {
  readonly proxy?: string;
  readonly output?: OutputFormat;
  readonly watch?: boolean;
}

interface Journal {
  readonly changes: readonly JournalEntry[];
}

const PERIOD_MS = 1_000;

export function pushesCommand(terminal: Terminal): Command {
  return withChoice(new Command("pushes"))
    .summary("show what the control plane sent, and why")
    .description(
      "Shows the push journal of a control plane: what changed, by which object, how many proxies and views it reached, bytes, and what proxies said.",
    )
    .option("--address <host:port>", "a control plane's monitoring or HTTP address, in place of a mesh that is up")
    .option("--proxy <name.namespace>", "what was sent to this proxy alone")
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .option("-w, --watch", "go on, every second")
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen pushes -w\n  mizzen pushes --proxy reviews-v1-1.default -o json\n  mizzen pushes --address 127.0.0.1:15014",
    )
    .action((options: PushesOptions) =>
      finish(terminal, async () => {
        do {
          const journal = await readJournal(options);
          const text =
            options.output === undefined
              ? formatPushes(journal.changes, terminal.style)
              : formatOutput(journal, options.output);
          terminal.print(`${options.watch === true && terminal.isScreen ? CLEAR : ""}${text}`);
          if (options.watch === true) await delay(PERIOD_MS);
        } while (options.watch === true);
        return 0;
      }),
    );
}

async function readJournal({ proxy, ...options }: PushesOptions): Promise<Journal> {
  const query = proxy === undefined ? "" : `?proxyID=${encodeURIComponent(proxy)}`;
  const text = await controlPlanePage(`/debug/pushes${query}`, options);
  try {
    return JSON.parse(text) as Journal;
  } catch (cause) {
    throw new MeshError("CONTROL_PLANE_UNREACHABLE", "Cannot read the push journal: it is no JSON", { cause });
  }
}
