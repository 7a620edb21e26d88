/** Finds services in the files that projects have: pure functions of their texts. */
import { load } from "js-yaml";
import { DEFAULT_PORT, type FoundService, nameFrom, wordsOf } from "./found-service.ts";

/** The variable by which most programs are told their port, and the first value that Procfile runners give it. */
const PROCFILE_PORT = 5000;
const PROCFILE_STEP = 100;

/** Lines of `name: command`. */
export function fromProcfile(text: string): readonly FoundService[] {
  const lines = [...text.matchAll(/^([\w-]+)\s*:\s*(\S.*)$/gm)].filter(([, name]) => name !== "release");
  return lines.map(([, name = "", line = ""], i) => {
    const port = PROCFILE_PORT + i * PROCFILE_STEP;
    return {
      ...BARE,
      name: nameFrom(name, "web"),
      command: wordsOf(line),
      port,
      env: { PORT: String(port) },
      source: "Procfile",
    };
  });
}

const BARE = { env: {}, after: [] } as const;

/** The script `start`, or the main file. Undefined when there is neither. */
export function fromPackageJson(text: string, mainText: string | undefined): FoundService | undefined {
  const json = recordOf(parsed(text));
  const start = recordOf(json.scripts).start;
  const main = json.main;
  const line = typeof start === "string" ? start : typeof main === "string" ? `node ${main}` : undefined;
  if (line === undefined) return undefined;
  const port = portIn(mainText ?? "") ?? DEFAULT_PORT;
  // Programs of the package itself are found as npm finds them.
  const words = wordsOf(line);
  const command = words[0] === "node" ? words : ["sh", "-c", `PATH="$PWD/node_modules/.bin:$PATH"; ${line}`];
  const name = nameFrom(String(json.name ?? "web").replace(/^@[^/]*\//, ""), "web");
  return { ...BARE, name, command, port, env: { PORT: String(port) }, source: "package.json" };
}

/** The file that package.json starts, as far as it is named there. */
export function mainFileOf(text: string): string | undefined {
  const json = recordOf(parsed(text));
  const start = recordOf(json.scripts).start;
  const named = typeof start === "string" ? /\bnode(?: -\S+)* ([\w./-]+\.[cm]?[jt]s)\b/.exec(start)?.[1] : undefined;
  return named ?? (typeof json.main === "string" ? json.main : undefined);
}

/** Services of a compose file; those that are images alone have no command. */
export function fromCompose(text: string): readonly FoundService[] {
  return Object.entries(recordOf(recordOf(loaded(text)).services)).map(([key, value]) => {
    const service = recordOf(value);
    const { command } = service;
    const words = Array.isArray(command)
      ? command.map(String)
      : typeof command === "string"
        ? wordsOf(command)
        : undefined;
    const context = typeof service.build === "string" ? service.build : recordOf(service.build).context;
    const after = Array.isArray(service.depends_on)
      ? service.depends_on.map(String)
      : Object.keys(recordOf(service.depends_on));
    return {
      name: nameFrom(key, "web"),
      command: words,
      ...(typeof context === "string" && context !== "." ? { workingDir: context } : {}),
      port: composePort(service) ?? DEFAULT_PORT,
      env: environmentOf(service.environment),
      after: after.map((name) => nameFrom(name, "web")),
      source: `compose file${typeof service.image === "string" ? `, image ${service.image}` : ""}`,
    };
  });
}

/** The port inside: the last number of `8080:80/tcp`, `target` of the long form, or what is exposed. */
function composePort({ ports, expose }: Record<string, unknown>): number | undefined {
  const first = (Array.isArray(ports) ? ports[0] : undefined) ?? (Array.isArray(expose) ? expose[0] : undefined);
  const target = recordOf(first).target;
  const text = String(target ?? first ?? "").replace(/\/\w+$/, "");
  const port = Number(text.slice(text.lastIndexOf(":") + 1));
  return isPort(port) ? port : undefined;
}

function environmentOf(value: unknown): Record<string, string> {
  const pairs = Array.isArray(value)
    ? value.map((line) => String(line).split(/=(.*)/s, 2)).filter(([, text]) => text !== undefined)
    : Object.entries(recordOf(value)).filter(([, text]) => text !== null);
  return Object.fromEntries(pairs.map(([name, text]) => [String(name), String(text)]));
}

const PORT_PATTERNS = [
  /\bPORT\b["'\])]*\s*(?:\?\?|\|\||,|=)\s*["']?(\d{2,5})\b/,
  /\blisten\(\s*(?:\{\s*port:\s*)?(\d{2,5})\b/,
  /\bport\s*[=:]\s*["']?(\d{2,5})\b/,
  /^EXPOSE\s+(\d{2,5})/m,
];

/** The port that a program listens on, as far as its text tells. */
export function portIn(text: string): number | undefined {
  const found = PORT_PATTERNS.map((pattern) => Number(pattern.exec(text)?.[1])).find(isPort);
  return found;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A file of this name that is something else tells nothing.
    return undefined;
  }
}

/** Not as Kubernetes reads YAML: compose files are read by YAML 1.2, where `N` is a letter. */
function loaded(text: string): unknown {
  try {
    return load(text);
  } catch {
    return undefined;
  }
}

function recordOf(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}
