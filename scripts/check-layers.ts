/**
 * Checks the layers of src/: a file imports its own folder or a folder of a lower number. Folders of the same layer meet
 * only through an interface in model/ that bin/ fills in. Inside a folder imports are relative, across folders by `#folder/`.
 * Packages know nothing about the mesh: they import neither src/ nor each other by path.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const LAYERS: Readonly<Record<string, number>> = {
  gen: 0,
  lib: 0,
  config: 1,
  model: 2,
  protocol: 2,
  translate: 3,
  convert: 3,
  inject: 3,
  install: 4,
  explain: 3,
  authn: 3,
  sources: 4,
  controllers: 4,
  xds: 4,
  ca: 4,
  webhooks: 4,
  capture: 4,
  agent: 4,
  debug: 4,
  dashboard: 4,
  "control-plane": 5,
  standalone: 5,
  cli: 6,
  bin: 7,
};
/** The agent runs in every pod: what it imports is what each pod pays for. */
const AGENT_MAY_IMPORT = [/^#lib\//, /^#protocol\//, /^#config\/(proxy-config|problem|mesh\/message-value)\.ts$/];
const ONLY_BIN_READS = /\bprocess\.(env|argv)\b/;

const src = join(import.meta.dirname, "../src");
const problems: string[] = [];

for (const file of globSync("**/*.ts", { cwd: src }).filter((name) => !name.startsWith("gen/"))) {
  const folder = file.split("/")[0] ?? "";
  const layer = LAYERS[folder];
  if (layer === undefined) {
    problems.push(`src/${file}: folder "${folder}" has no layer`);
    continue;
  }
  const text = readFileSync(join(src, file), "utf8");
  const isTest = file.endsWith(".test.ts");
  for (const target of importsOf(text)) {
    if (isTest && target.includes("test/support")) continue;
    if (target.startsWith("#")) checkAcross(file, folder, layer, target, isTest);
    else if (new URL(target, `file:///${file}`).pathname.split("/")[1] !== folder) {
      problems.push(`src/${file}: "${target}" leaves the folder: write "#..."`);
    }
  }
  if (!isTest && layer < 7 && ONLY_BIN_READS.test(text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, ""))) {
    problems.push(`src/${file}: reads process.env or process.argv, which only src/bin may`);
  }
}

const packages = join(import.meta.dirname, "../packages");
for (const file of globSync("*/src/**/*.ts", { cwd: packages })) {
  const name = file.split("/")[0] ?? "";
  for (const target of importsOf(readFileSync(join(packages, file), "utf8"))) {
    if (file.endsWith(".test.ts") && target.includes("test/support")) continue;
    if (target.startsWith("#"))
      problems.push(`packages/${file}: imports ${target} from src/, which packages must not know`);
    else if (new URL(target, `file:///${file}`).pathname.split("/")[1] !== name)
      problems.push(`packages/${file}: "${target}" leaves the package: import it by its name`);
  }
}

function importsOf(text: string): readonly string[] {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"([#.][^"]+)"/g)].map((match) => match[1] ?? "");
}

function checkAcross(file: string, folder: string, layer: number, target: string, isTest: boolean): void {
  const other = target.slice(1).split("/")[0] ?? "";
  const otherLayer = LAYERS[other];
  if (otherLayer === undefined) problems.push(`src/${file}: "${target}" is in no folder with a layer`);
  else if (other === folder) problems.push(`src/${file}: "${target}" is in its own folder: write a relative path`);
  else if (otherLayer >= layer && !(layer === 0 && otherLayer === 0)) {
    problems.push(`src/${file} (layer ${layer}) imports ${target} (layer ${otherLayer})`);
  }
  if (folder === "agent" && !isTest && !AGENT_MAY_IMPORT.some((pattern) => pattern.test(target))) {
    problems.push(`src/${file}: the agent may not import ${target}`);
  }
}

for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
