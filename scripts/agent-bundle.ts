/**
 * The agent's bundle, in two parts: what runs until Envoy is started, and the rest, which is read while Envoy starts.
 * Modules are cut into chunks by what imports them when (esbuild's splitting), and the chunks packed by part: a part is a
 * CommonJS module that exports its chunks as functions, and the first runs itself.
 */
import { basename } from "node:path";
import { build, type Metafile, transform } from "esbuild";

/** The modules whose loading ends with Envoy's start, and what they import. */
const FIRST = ["src/bin/pilot-agent.ts", "src/bin/agent/proxy-command.ts", "src/agent/agent.ts", "src/agent/place.ts"];

/** Modules of Node that take milliseconds to load, and that an agent needs only when its Envoy starts already. */
const LATE = "crypto|dgram|dns|dns/promises|fs/promises|http|http2|https|stream/promises|tls";

/** Importing files get at what a module exports by its properties only. */
const LOAD_LATE = `
function loadLate(name) {
  let loaded;
  return new Proxy({}, { get: (_, key) => (loaded ??= require(name))[key] });
}`;

export interface AgentBundle {
  readonly first: string;
  readonly rest: string;
  /** Files that each part was made of. */
  readonly inputs: { readonly first: readonly string[]; readonly rest: readonly string[] };
}

/** `restName` is how the first part finds the other. */
export async function agentBundle(root: string, restName: string): Promise<AgentBundle> {
  const { outputFiles, metafile } = await build({
    absWorkingDir: root,
    entryPoints: ["src/bin/pilot-agent.ts"],
    outdir: "dist",
    write: false,
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node24",
    format: "esm",
    define: { "import.meta.dirname": "__dirname" },
    logLevel: "warning",
    metafile: true,
  });
  const early = firstChunks(metafile);
  const parts = { first: [] as string[], rest: [] as string[] };
  for (const { path, text } of outputFiles) {
    const name = basename(path);
    parts[early.has(name) ? "first" : "rest"].push(
      `${JSON.stringify(`./${name}`)}(exports,require,module){${await commonJs(text)}}`,
    );
  }
  const inputsOf = (isFirst: boolean) =>
    Object.entries(metafile.outputs)
      .filter(([path]) => early.has(basename(path)) === isFirst)
      .flatMap(([, { inputs }]) => Object.keys(inputs));
  return {
    first: `${chunks(parts.first)}${loader(restName)}${LOAD_LATE}`,
    rest: `${chunks(parts.rest)}module.exports=chunks;${LOAD_LATE}`,
    inputs: { first: inputsOf(true), rest: inputsOf(false) },
  };
}

function chunks(functions: readonly string[]): string {
  return `const chunks={${functions.join(",\n")}};\n`;
}

function loader(restName: string): string {
  return `
const loaded = {};
function load(name) {
  if (!name.startsWith("./")) return require(name);
  if (name in loaded) return loaded[name].exports;
  if (!(name in chunks)) Object.assign(chunks, require(${JSON.stringify(restName)}));
  const module = (loaded[name] = { exports: {} });
  chunks[name](module.exports, load, module);
  return module.exports;
}
load("./pilot-agent.js");`;
}

/** Names of the files that the first modules are in, and of those that these import at once. */
function firstChunks({ outputs }: Metafile): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (path: string) => {
    if (found.has(path)) return;
    found.add(path);
    for (const { path: next, kind, external } of outputs[path]?.imports ?? [])
      if (kind === "import-statement" && external !== true) add(next);
  };
  for (const [path, { entryPoint = "" }] of Object.entries(outputs)) if (FIRST.includes(entryPoint)) add(path);
  return new Set([...found].map((path) => basename(path)));
}

async function commonJs(text: string): Promise<string> {
  const { code } = await transform(text, {
    format: "cjs",
    platform: "node",
    target: "node24",
    supported: { "dynamic-import": false },
    // V8 keeps the text in memory as long as the program runs, and twice as large where a comment is not Latin. A limit,
    // because Node shows the line of a fatal error.
    minifyWhitespace: true,
    lineLimit: 160,
  });
  return code.replaceAll(
    new RegExp(`(import_\\w+\\s*=\\s*)require\\("(node:(?:${LATE}))"\\)`, "g"),
    '$1loadLate("$2")',
  );
}
