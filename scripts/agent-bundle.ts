/**
 * The agent's bundle, in parts that are read when something of them is needed: what runs until Envoy is started, what serves
 * Envoy, and what most agents never need, such as other commands. Modules are cut into chunks by what imports them when
 * (esbuild's splitting), and the chunks packed by part: a part is a CommonJS module that exports its chunks as functions,
 * and the first runs itself.
 */
import { basename } from "node:path";
import { build, type Metafile, transform } from "esbuild";

/**
 * Names of the parts, and the modules that are in each with all that they import, unless an earlier part has it. The last
 * one takes what is left.
 */
const PARTS = {
  "pilot-agent.cjs": [
    "src/bin/pilot-agent.ts",
    "src/agent/command/proxy-command.ts",
    "src/agent/agent.ts",
    "src/agent/place.ts",
  ],
  "pilot-agent.serving.cjs": [
    "src/agent/serve-envoy.ts",
    "src/agent/serve-sockets.ts",
    "src/agent/sds/ca/ca-client.ts",
    "src/agent/xds-proxy/debug-tap.ts",
  ],
  "pilot-agent.yaml.cjs": ["src/lib/yaml/read.ts"],
  "pilot-agent.rest.cjs": [],
} as const;

export type PartName = keyof typeof PARTS;

const FIRST: PartName = "pilot-agent.cjs";
const LAST: PartName = "pilot-agent.rest.cjs";

/** Modules of Node that take milliseconds to load, and that an agent needs only when its Envoy starts already. */
const LATE = "crypto|dgram|dns|dns/promises|fs/promises|http|http2|https|stream/promises|tls";

/** Importing files get at what a module exports by its properties only. */
const LOAD_LATE = `
function loadLate(name) {
  let loaded;
  return new Proxy({}, { get: (_, key) => (loaded ??= require(name))[key] });
}`;

export interface AgentPart {
  readonly text: string;
  /** Files that it was made of. */
  readonly inputs: readonly string[];
}

export async function agentBundle(root: string): Promise<Readonly<Record<PartName, AgentPart>>> {
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
  const partOf = partsOfChunks(metafile);
  const chunks = await Promise.all(
    outputFiles.map(async ({ path, text }) => ({ name: basename(path), text: await commonJs(text) })),
  );
  const part = (name: PartName): AgentPart => {
    const own = chunks.filter((chunk) => partOf.get(chunk.name) === name);
    const functions = own.map((chunk) => `"./${chunk.name}"(exports,require,module){${chunk.text}}`).join(",\n");
    return {
      text: `const chunks={${functions}};\n${name === FIRST ? loader(partOf) : "module.exports=chunks;"}${LOAD_LATE}`,
      inputs: own.flatMap((chunk) => Object.keys(metafile.outputs[`dist/${chunk.name}`]?.inputs ?? {})),
    };
  };
  const names = Object.keys(PARTS) as PartName[];
  return Object.fromEntries(names.map((name) => [name, part(name)])) as Record<PartName, AgentPart>;
}

function loader(partOf: ReadonlyMap<string, PartName>): string {
  const elsewhere = [...partOf].filter(([, part]) => part !== FIRST).map(([name, part]) => [`./${name}`, `./${part}`]);
  return `
const partOf = ${JSON.stringify(Object.fromEntries(elsewhere))};
const loaded = {};
function load(name) {
  if (!name.startsWith("./")) return require(name);
  if (name in loaded) return loaded[name].exports;
  if (!(name in chunks)) Object.assign(chunks, require(partOf[name]));
  const module = (loaded[name] = { exports: {} });
  chunks[name](module.exports, load, module);
  return module.exports;
}
load("./pilot-agent.js");`;
}

/** By the name of the file that esbuild would write a chunk to. */
function partsOfChunks({ outputs }: Metafile): ReadonlyMap<string, PartName> {
  const found = new Map<string, PartName>();
  const add = (path: string, part: PartName) => {
    if (found.has(basename(path))) return;
    found.set(basename(path), part);
    for (const { path: next, kind, external } of outputs[path]?.imports ?? [])
      if (kind === "import-statement" && external !== true) add(next, part);
  };
  for (const [part, modules] of Object.entries(PARTS) as [PartName, readonly string[]][])
    for (const [path, { entryPoint = "" }] of Object.entries(outputs))
      if (modules.includes(entryPoint)) add(path, part);
  for (const path of Object.keys(outputs)) add(path, LAST);
  return found;
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
