/** `mizzen up`: starts a mesh and stays with it, or leaves it in the background. */
import { dirname, join, relative, resolve } from "node:path";
import { Command, Option } from "commander";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { ChildReply } from "#standalone/library/start-mesh.ts";
import { AGENTS_MODES, type AgentsMode } from "#standalone/mesh/mesh.ts";
import type { MeshStatus } from "#standalone/status/status.ts";
import type { StartedMesh } from "#standalone/up/up.ts";
import { rowsOf } from "../ps/member-rows.ts";
import { formatMembers, formatPublished, formatSuggestions } from "../ps/mesh-table.ts";
import { EXIT, EXIT_CODES_HELP, finish } from "../terminal/exit-codes.ts";
import { defaultStateFolder, seconds } from "../terminal/options.ts";
import { isRootless } from "../terminal/rootless.ts";
import { sayChanges } from "../terminal/say-changes.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { suggestedCommand } from "./suggested-commands.ts";

interface UpFlags {
  readonly detach?: boolean;
  readonly state?: string;
  readonly name?: string;
  readonly freePorts?: boolean;
  readonly egress?: boolean;
  readonly exitWhenDone?: boolean;
  readonly agents?: AgentsMode;
  readonly asChild?: boolean;
  readonly timeout: number;
}

const HELP = `
Examples:
  mizzen up samples/bookinfo            start Bookinfo and stay with it; Ctrl-C removes everything
  mizzen up samples/httpbin --detach    start it in the background; \`mizzen down\` removes it
  mizzen up . --free-ports              publish on free ports, when those of mesh.yaml are taken
  mizzen up tests --exit-when-done      run its jobs, remove everything, and exit with their exit code

A mesh that is up is changed to what mesh.yaml says now: only what differs is restarted.

${EXIT_CODES_HELP}`;

export function upCommand(terminal: Terminal): Command {
  return new Command("up")
    .summary("start a mesh on this machine")
    .description(
      "Starts the mesh that FOLDER/mesh.yaml describes: control plane, a sidecar for every workload, gateways, with mutual TLS between all of them. It lives in network namespaces of its own; the machine's network is left alone.",
    )
    .argument("[folder]", "folder with a mesh.yaml, or the file itself", ".")
    .option("-d, --detach", "return when the mesh is ready, and leave it running")
    .option("--state <folder>", "where identity, logs and status are kept (default: /var/lib/mizzen/NAME)")
    .option("--name <name>", "name of the mesh, instead of the one in mesh.yaml")
    .option("--free-ports", "publish on free host ports instead of those in mesh.yaml")
    .option("--egress", "let workloads reach what this machine reaches; without it there is no way out")
    .option("--exit-when-done", "end the mesh when its jobs have, with the exit code of the first one that failed")
    .addOption(
      new Option("--agents <mode>", "an agent process for each proxy, or one for all").choices([...AGENTS_MODES]),
    )
    .option("--timeout <seconds>", "how long the mesh may take to become ready", seconds, 120)
    .addOption(new Option("--as-child", "for programs that start a mesh").hideHelp())
    .addHelpText("after", HELP)
    .action((folder: string, flags: UpFlags) =>
      finish(terminal, () => (flags.asChild === true ? runAsChild : runUp)(terminal, folder, flags)),
    );
}

/** For the library: tells how the start went by a line of JSON, and ends when its input does. */
async function runAsChild(terminal: Terminal, folder: string, flags: UpFlags): Promise<number> {
  try {
    return await runUp(terminal, folder, flags);
  } catch (error) {
    if (error instanceof MeshError) tell(terminal, { kind: "failed", code: error.code, message: errorText(error) });
    throw error;
  }
}

function tell(terminal: Terminal, reply: ChildReply): void {
  terminal.print(`${JSON.stringify(reply)}\n`);
}

async function runUp(terminal: Terminal, folder: string, flags: UpFlags): Promise<number> {
  const { up } = await import("#standalone/up/up.ts");
  const startedAt = Date.now();
  const interruption = watchInterrupts(terminal, flags.asChild === true);
  const result = await up({
    folder,
    name: flags.name,
    stateFolder: (name) => (flags.state === undefined ? defaultStateFolder(terminal, name) : resolve(flags.state)),
    freePorts: flags.freePorts === true,
    egress: flags.egress === true,
    rootless: isRootless(terminal),
    exitWhenDone: flags.exitWhenDone === true,
    agents: flags.agents,
    detached: flags.detach === true,
    startTimeoutMs: flags.timeout * 1000,
    installed: terminal.installed,
    runner: [...terminal.self, "run-mesh"],
    path: terminal.env.PATH ?? "",
    onProgress: (line) => terminal.say(`${elapsed(startedAt)}  ${line}`),
  });
  if (result.kind === "applied") {
    if (flags.asChild === true) throw new MeshError("MESH_ALREADY_UP", "a mesh is up with this state folder");
    sayChanges(terminal, result.summary);
    return 0;
  }
  const { mesh } = result;
  interruption.aim(mesh);
  try {
    const status = await mesh.ready;
    if (status !== undefined && flags.asChild === true) tell(terminal, { kind: "ready", status });
    else if (status !== undefined) await printReady(terminal, status, mesh);
  } catch (error) {
    await end(mesh);
    if (interruption.count > 0) return EXIT.interrupted;
    terminal.say(`logs of what happened are in ${join(mesh.registration.stateFolder, "logs")}`);
    throw error;
  }
  if (flags.detach === true) {
    mesh.release();
    return 0;
  }
  if (flags.asChild !== true) terminal.say("Press Ctrl-C to stop the mesh and remove everything.");
  return staysUntilEnd(terminal, mesh, interruption);
}

async function staysUntilEnd(terminal: Terminal, mesh: StartedMesh, interruption: Interruption): Promise<number> {
  const { code, signal, jobsCode } = await end(mesh);
  const { name } = mesh.registration;
  if (jobsCode !== undefined) {
    terminal.say(`the jobs of mesh "${name}" are done; the mesh is down, nothing of it is left`);
    return jobsCode;
  }
  if (code !== 0 && interruption.count === 0) {
    const how = signal === null ? `ended with code ${code}` : `was killed by ${signal}`;
    throw new MeshError("RUNNER_LOST", `the mesh's runner ${how}; the mesh is removed`);
  }
  terminal.say(`mesh "${name}" is down, nothing of it is left`);
  return 0;
}

/** Waits for the runner and makes sure that it left nothing, however it ended. */
async function end(mesh: StartedMesh): ReturnType<() => StartedMesh["ended"]> {
  const { cleanMesh } = await import("#standalone/run/clean.ts");
  const how = await mesh.ended;
  await cleanMesh({ ...mesh.registration, graceMs: 0 });
  return how;
}

async function printReady(terminal: Terminal, status: MeshStatus, mesh: StartedMesh): Promise<void> {
  const { suggestions, registration } = mesh;
  const { style } = terminal;
  terminal.print(`\n${formatMembers(rowsOf(status), style, false)}`);
  const published = formatPublished(status.published, style);
  terminal.print(published === "" ? "" : `\n${published}`);
  const choice = await choiceAmong(registration);
  const words = { mizzen: shortPath(terminal.program), folder: shortPath(dirname(status.file)), choice };
  const tried = suggestions.map(({ what, run }) => ({ what, run: suggestedCommand(run, words) }));
  terminal.print(formatSuggestions(tried, style));
}

/** Options by which commands find the mesh; none while it is the only one. */
async function choiceAmong({ id, name, stateFolder }: StartedMesh["registration"]): Promise<string> {
  const { registrations } = await import("#standalone/up/registration.ts");
  const others = (await registrations()).filter((mesh) => mesh.id !== id);
  if (others.length === 0) return "";
  return others.some((mesh) => mesh.name === name) ? `--state ${stateFolder}` : `--mesh ${name}`;
}

/** As a person would write it in this folder. */
function shortPath(path: string): string {
  const near = relative(process.cwd(), path);
  return near === "" ? "." : near.startsWith("..") ? path : near;
}

interface Interruption {
  readonly count: number;
  /** From now on an interrupt stops this mesh. */
  aim(mesh: StartedMesh): void;
}

/** The first interrupt stops the mesh, the second one does not wait for apps that take their time. */
function watchInterrupts(terminal: Terminal, asChild: boolean): Interruption {
  let mesh: StartedMesh | undefined;
  let count = 0;
  const stop = () => {
    if (count === 1) mesh?.stop();
    else if (mesh !== undefined) void mesh.kill();
  };
  const interrupt = () => {
    count++;
    terminal.say(count === 1 ? "stopping the mesh" : "stopping the mesh by force");
    stop();
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, interrupt);
  if (asChild) process.stdin.resume().once("end", interrupt);
  return {
    get count() {
      return count;
    },
    aim(started) {
      mesh = started;
      if (count > 0) stop();
    },
  };
}

function elapsed(since: number): string {
  return `${((Date.now() - since) / 1000).toFixed(1).padStart(5)} s`;
}
