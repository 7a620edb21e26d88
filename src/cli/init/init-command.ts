/** `mizzen init`: a starter folder for services of one's own. */
import { relative } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { finish } from "../terminal/exit-codes.ts";
import type { Terminal } from "../terminal/terminal.ts";

interface InitFlags {
  readonly name?: string;
  readonly port?: number;
  readonly command?: string;
}

const HELP = `
Examples:
  mizzen init                                                        in the folder of a project
  mizzen init shop --name shop --command "python3 app.py" --port 5000
  mizzen init && mizzen up

It looks for a compose file, a Procfile, programs that run in the folder and listen, package.json, and files such as app.py
or index.js, in this order. Nothing is overwritten.`;

export function initCommand(terminal: Terminal): Command {
  return new Command("init")
    .summary("write a mesh.yaml for services of your own")
    .description(
      "Writes a commented mesh.yaml, services.yaml and gateway.yaml for the services of a folder. It finds out what it can: how they are started, on which port, what they need.",
    )
    .argument("[folder]", "folder to write into; it is made when it is not there", ".")
    .option("--name <name>", "name of the mesh, and of the workload when there is one (default: that of the folder)")
    .option("--port <number>", "port that the service listens on", portNumber)
    .option("--command <line>", "how the service is started")
    .addHelpText("after", HELP)
    .action((folder: string, flags: InitFlags) =>
      finish(terminal, async () => {
        const { init } = await import("#standalone/init/init.ts");
        const { name, port, command } = flags;
        const written = await init({ folder, name, port, command });
        for (const service of written.services) {
          const how = service.command?.join(" ") ?? "not started: say how in mesh.yaml";
          terminal.say(`${service.name}, port ${service.port}: ${how} (from ${service.source})`);
        }
        const here = relative(process.cwd(), written.folder) || ".";
        terminal.print(`wrote ${written.files.join(", ")}\nstart it with: mizzen up ${here}\n`);
        return 0;
      }),
    );
}

function portNumber(text: string): number {
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) throw new InvalidArgumentError("It must be a port number.");
  return port;
}
