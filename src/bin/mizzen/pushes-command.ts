/** `mizzen pushes`: what the control plane sent, and why. */
import { setTimeout as delay } from "node:timers/promises";
import { Command, Option } from "commander";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#cli/output.ts";
import { formatPushes, type JournalEntry } from "#cli/pushes-table.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { finish } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

interface PushesOptions {
  readonly address: string;
  readonly proxy?: string;
  readonly output?: OutputFormat;
  readonly watch?: boolean;
}

const PERIOD_MS = 1_000;
const TIMEOUT_MS = 10_000;
/** Back to the upper left corner, clearing what was there. */
const CLEAR = "\u001b[H\u001b[2J";

export function pushesCommand(terminal: Terminal): Command {
  return new Command("pushes")
    .summary("show what the control plane sent, and why")
    .description(
      "Shows the push journal of a control plane: what changed, by which object, how many proxies and views it reached, bytes, and what proxies said.",
    )
    .option("--address <host:port>", "the control plane's monitoring or HTTP address", "127.0.0.1:15014")
    .option("--proxy <name.namespace>", "what was sent to this proxy alone")
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .option("-w, --watch", "go on, every second")
    .addHelpText("after", "\nExamples:\n  mizzen pushes -w\n  mizzen pushes --proxy reviews-v1-1.default -o json")
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

async function readJournal({ address, proxy }: PushesOptions): Promise<{ readonly changes: readonly JournalEntry[] }> {
  const query = proxy === undefined ? "" : `?proxyID=${encodeURIComponent(proxy)}`;
  try {
    const response = await fetch(`http://${address}/debug/pushes${query}`, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return (await response.json()) as { readonly changes: readonly JournalEntry[] };
  } catch (cause) {
    throw new MeshError("CONTROL_PLANE_UNREACHABLE", `Cannot read the push journal at ${address}`, { cause });
  }
}
