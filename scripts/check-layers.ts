/**
 * Checks the layers of src/: a file imports its own folder or a folder of a lower number. Folders of the same layer meet
 * only through an interface in model/ that bin/ fills in. Inside a folder imports are relative, across folders by `#folder/`.
 * The subfolders of a folder have an order too. Packages know nothing about the mesh: they import neither src/ nor each other by path.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { LAYERS, SUBFOLDERS } from "./folders.ts";

/** The agent runs in every pod: what it imports is what each pod pays for. */
const AGENT_MAY_IMPORT = [
  /^#lib\//,
  /^#protocol\//,
  /^#config\/(proxy-config\/proxy-config|schema\/problem|mesh\/message-value)\.ts$/,
];
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
    else if (normalize(join(dirname(file), target)).split("/")[0] !== folder) {
      problems.push(`src/${file}: "${target}" leaves the folder: write "#..."`);
    } else if (!isTest) checkInside(file, target);
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

function checkInside(file: string, target: string): void {
  const imported = normalize(join(dirname(file), target));
  const [folder = "", from, to] = [file.split("/")[0], subfolderOf(file), subfolderOf(imported)];
  if (from === to || SUBFOLDERS[folder] === undefined) return;
  const order = SUBFOLDERS[folder].split(" ");
  if (order.indexOf(to) < order.indexOf(from)) return;
  problems.push(`src/${file}: imports ${target}, but "${to}" does not stand before "${from}" in scripts/folders.ts`);
}

/** The first subfolder of a file; `.` for the files of the folder itself. */
function subfolderOf(file: string): string {
  const parts = file.split("/");
  return parts.length > 2 ? (parts[1] ?? ".") : ".";
}

for (const [folder, order] of Object.entries(SUBFOLDERS)) {
  const found = new Set(globSync(`${folder}/**/*.ts`, { cwd: src }).map(subfolderOf));
  const declared = new Set(order.split(" "));
  for (const name of found.difference(declared))
    problems.push(`src/${folder}: subfolder "${name}" has no place in scripts/folders.ts`);
  for (const name of declared.difference(found))
    problems.push(`scripts/folders.ts: src/${folder}/${name} does not exist`);
}

/** More files than this in one folder are a list that nobody reads. */
const MOST_FILES = 15;
/** Folders that are still to be divided; the list only gets shorter. */
const STILL_FLAT = new Set(["src/agent"]);
const perFolder = Map.groupBy(
  globSync("{src,packages}/**/*.ts", { cwd: join(src, "..") }).filter((file) => !/^src\/gen\/|\.test\.ts$/.test(file)),
  (file) => dirname(file),
);
for (const [folder, files] of perFolder)
  if (files.length > MOST_FILES && !STILL_FLAT.has(folder))
    problems.push(`${folder}: ${files.length} source files; at most ${MOST_FILES} belong in one folder`);

for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
