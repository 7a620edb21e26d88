/** `serve FOLDER`: one agent for several workloads; and what it runs inside their namespaces. */
import type { Socket as UdpSocket } from "node:dgram";
import type { Server } from "node:net";
import { Command } from "commander";
import { SHARED_DEBUG_SOCKET } from "../debug-socket/path.ts";
import { addLogFlags, loggerOf } from "./log-flags.ts";
import { endSignals } from "./proxy-command.ts";

/** `program` starts this program again. */
export function serveCommand(program: readonly string[]): Command {
  const command = new Command("serve")
    .description("Serves all workloads that are described in a folder, each in its own network namespace")
    .argument("<folder>", "a JSON file for each workload; they may come and go")
    .option(
      "--profiling",
      `Enable profiling on the unix socket ${SHARED_DEBUG_SOCKET} of the folder, under /debug/pprof/.`,
      false,
    );
  return addLogFlags(command).action(async (folder: string, _: object, self: Command) => {
    const log = loggerOf(self);
    const { serveWorkloads } = await import("../shared/serve-workloads.ts");
    const profiling: boolean = self.opts().profiling;
    await serveWorkloads({ folder, program, profiling, log, ...endSignals(log) });
    process.exit(process.exitCode ?? 0);
  });
}

/** Run by `serve` inside a namespace; it speaks over the channel of its parent. */
export function openSocketsCommand(): Command {
  return new Command("open-sockets").argument("<wanted>", "JSON").action(async (wanted: string) => {
    const { openSockets } = await import("../shared/open-sockets.ts");
    await openSockets(
      JSON.parse(wanted),
      (message, handle?: Server | UdpSocket) =>
        new Promise((resolve, reject) => {
          if (process.send === undefined) reject(new Error("open-sockets is run by pilot-agent serve only"));
          else process.send(message, handle, {}, (error) => (error === null ? resolve() : reject(error)));
        }),
    );
    process.disconnect();
    process.exit(0);
  });
}
