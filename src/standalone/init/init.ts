/** Writes a starter folder for services of one's own. It asks nothing that it can find out, and overwrites nothing. */
import { once } from "node:events";
import { access, readFile, realpath, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { basename, join, resolve } from "node:path";
import { makeFolder } from "#lib/files/make-folder.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { ignoring } from "../host/ignoring.ts";
import { EXECUTE, READ, usableBy } from "../host/readable.ts";
import { checkMembers, isName, NAME_RULE } from "../mesh/check-members.ts";
import { NOBODY } from "../plan/enter.ts";
import { fromCompose, fromPackageJson, fromProcfile, mainFileOf, portIn } from "./detect.ts";
import { DEFAULT_PORT, type FoundService, nameFrom, wordsOf } from "./found-service.ts";
import { fromProcesses } from "./listening.ts";
import { starterFiles } from "./starter-files.ts";

export interface InitOptions {
  readonly folder: string;
  /** Name of the mesh; with a command, of the workload too. */
  readonly name: string | undefined;
  readonly port: number | undefined;
  /** Command line of the one workload. */
  readonly command: string | undefined;
}

export interface Initialized {
  readonly folder: string;
  /** Names of the files that were written. */
  readonly files: readonly string[];
  readonly services: readonly FoundService[];
}

/** Writes the files. */
export async function init(options: InitOptions): Promise<Initialized> {
  if (options.name !== undefined && !isName(options.name)) {
    throw new MeshError("INIT_INVALID", `Cannot name it ${JSON.stringify(options.name)}: --name ${NAME_RULE}`);
  }
  const folder = await folderAt(options.folder);
  const found = await findServices(folder, options);
  const services = distinct(found.length > 0 ? found : [HELLO]);
  const problems = checkMembers({
    workloads: services.map(({ name, port }) => ({ name, command: ["x"], ports: [port] })),
  });
  const wrong = problems.find(({ severity }) => severity === "error");
  if (wrong !== undefined) {
    throw new MeshError(
      "INIT_INVALID",
      `Cannot use what was found: ${wrong.field} ${wrong.message}; say it by --name and --port`,
    );
  }
  const texts = {
    ...starterFiles({
      name: options.name ?? nameFrom(basename(folder), "mesh"),
      services,
      user: await ownerFor(folder),
      hostPort: await freePort(),
    }),
    ...(found.length > 0 ? {} : { [HELLO_FILE]: HELLO_PROGRAM }),
  };
  await writeNew(folder, texts);
  return { folder, files: Object.keys(texts), services };
}

async function folderAt(path: string): Promise<string> {
  try {
    makeFolder(path);
    return await realpath(path);
  } catch (cause) {
    throw new MeshError("INIT_FAILED", `Cannot write into "${resolve(path)}": ${errorText(cause)}`);
  }
}

/** The first that tells of any wins: who says it, says all of it. */
async function findServices(folder: string, { name, port, command }: InitOptions): Promise<readonly FoundService[]> {
  if (command !== undefined) return [told(command, name ?? nameFrom(basename(folder), "web"), port ?? DEFAULT_PORT)];
  const read = (file: string) => ignoring(["ENOENT", "EISDIR", "ENOTDIR"], () => readFile(join(folder, file), "utf8"));
  for (const file of ["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"]) {
    const services = fromCompose((await read(file)) ?? "");
    if (services.some((service) => service.command !== undefined)) return services;
  }
  const fromFiles = fromProcfile((await read("Procfile")) ?? "");
  if (fromFiles.length > 0) return withPort(fromFiles, port);
  const running = await fromProcesses(folder);
  if (running.length > 0) return withPort(running, port);
  const packageJson = await read("package.json");
  const main = packageJson && mainFileOf(packageJson);
  const own = packageJson && fromPackageJson(packageJson, main === undefined ? undefined : await read(main));
  if (own) return withPort([own], port);
  for (const file of ["app.py", "main.py", "server.py", "server.js", "index.js", "app.js", "main.js"]) {
    const text = await read(file);
    if (text === undefined) continue;
    const line = `${file.endsWith(".py") ? "python3 -u" : "node"} ${file}`;
    return [
      { ...told(line, name ?? nameFrom(basename(folder), "web"), port ?? portIn(text) ?? DEFAULT_PORT), source: file },
    ];
  }
  return [];
}

function told(line: string, name: string, port: number): FoundService {
  return { name, command: wordsOf(line), port, env: { PORT: String(port) }, after: [], source: "--command" };
}

/** A port that the person says is that of the only service, or of the first. */
function withPort(services: readonly FoundService[], port: number | undefined): readonly FoundService[] {
  if (port === undefined) return services;
  return services.map((service, i) => {
    const env = service.env.PORT === undefined ? service.env : { ...service.env, PORT: String(port) };
    return i === 0 ? { ...service, port, env } : service;
  });
}

/** Two of one name would be one workload. */
function distinct(services: readonly FoundService[]): readonly FoundService[] {
  return [...new Map(services.map((service) => [service.name, service])).values()];
}

const HELLO_FILE = "hello.js";
const HELLO: FoundService = {
  name: "hello",
  command: ["node", HELLO_FILE],
  port: DEFAULT_PORT,
  env: { PORT: String(DEFAULT_PORT) },
  after: [],
  source: "nothing: put your own in its place",
};
const HELLO_PROGRAM = `// A service to begin with; any program in any language will do.
const { env } = process;
import("node:http").then(({ createServer }) => {
  createServer((request, response) => {
    response.end(\`hello from \${env.POD_NAME}, you asked for \${request.url}\\n\`);
  }).listen(Number(env.PORT));
});
`;

/**
 * Apps run as nobody unless nobody may not read the folder, as under a home that is closed to others. Without root a mesh
 * has accounts of its own, and a copy of the folder does.
 */
async function ownerFor(folder: string): Promise<string | undefined> {
  const { uid } = await stat(folder);
  if (process.getuid?.() !== 0 || uid === 0 || (await usableBy(folder, [NOBODY], READ | EXECUTE))) return undefined;
  return String(uid);
}

/** 8080, or the next one that nobody listens on. */
async function freePort(): Promise<number> {
  for (let port = DEFAULT_PORT; port < DEFAULT_PORT + 100; port++) {
    const server = createServer().listen({ host: "127.0.0.1", port });
    const free = await once(server, "listening").then(
      () => true,
      () => false,
    );
    server.close();
    if (free) return port;
  }
  return 0;
}

async function writeNew(folder: string, texts: Readonly<Record<string, string>>): Promise<void> {
  for (const name of Object.keys(texts)) {
    const there = await access(join(folder, name)).then(
      () => true,
      () => false,
    );
    if (there)
      throw new MeshError(
        "INIT_EXISTS",
        `Cannot write "${join(folder, name)}": it is there, and nothing is overwritten`,
      );
  }
  try {
    for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text, { flag: "wx" });
  } catch (cause) {
    throw new MeshError("INIT_FAILED", `Cannot write into "${folder}": ${errorText(cause)}`);
  }
}
