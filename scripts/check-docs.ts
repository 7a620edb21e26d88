/**
 * Keeps the documents true where a script can: links between files exist, decision records have one number each, and the
 * error codes in docs/reference/errors.md are those of the sources, and pages that are made from tables are current.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { outdatedEnvironmentPages } from "./environment-pages.ts";
import { SUBFOLDERS } from "./folders.ts";
import { outdatedSchemaFiles } from "./json-schemas.ts";

const root = join(import.meta.dirname, "..");
const problems: string[] = [];

for (const file of globSync(
  ["*.md", "docs/**/*.md", "packages/*/*.md", "test/**/*.md", "samples/**/*.md", "bench/**/*.md"],
  {
    cwd: root,
  },
)) {
  const text = readFileSync(join(root, file), "utf8");
  for (const match of text.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
    const target = match[1] ?? "";
    if (!/^[a-z]+:/.test(target) && !existsSync(join(root, dirname(file), target))) {
      problems.push(`${file}: link to "${target}", which does not exist`);
    }
  }
}

const numbers = new Map<string, string>();
for (const file of globSync("docs/decisions/*.md", { cwd: root }).sort()) {
  const number = /\/(\d{4})-/.exec(file)?.[1];
  if (number === undefined) problems.push(`${file}: a decision record is named NNNN-title.md`);
  else if (numbers.has(number)) problems.push(`${file}: number ${number} is taken by ${numbers.get(number)}`);
  else numbers.set(number, file);
}

const used = new Set<string>();
for (const file of globSync("src/**/*.ts", { cwd: root })) {
  if (file.startsWith("src/gen/") || file.endsWith(".test.ts")) continue;
  const text = readFileSync(join(root, file), "utf8");
  for (const match of text.matchAll(/(?:new MeshError|super)\(\s*"([A-Z0-9_]+)"/g)) used.add(match[1] ?? "");
}
const errorsFile = join(root, "docs/reference/errors.md");
const listed = new Set(
  existsSync(errorsFile)
    ? [...readFileSync(errorsFile, "utf8").matchAll(/^\| `([A-Z0-9_]+)`/gm)].map((m) => m[1] ?? "")
    : [],
);
for (const code of used.difference(listed)) problems.push(`docs/reference/errors.md: ${code} is thrown but not listed`);
for (const code of listed.difference(used)) problems.push(`docs/reference/errors.md: ${code} is listed but not thrown`);

const architecture = readFileSync(join(root, "ARCHITECTURE.md"), "utf8");
for (const [folder, order] of Object.entries(SUBFOLDERS)) {
  const names = order.split(" ").map((name) => `\`${name}\``);
  const row = `| \`${folder}\` | ${names.join(" → ")} |`;
  if (!architecture.includes(row)) problems.push(`ARCHITECTURE.md: the order of scripts/folders.ts is missing: ${row}`);
}

for (const file of outdatedEnvironmentPages()) {
  problems.push(`${file} differs from its table: run node scripts/environment-pages.ts`);
}

for (const file of outdatedSchemaFiles()) {
  problems.push(`${file} is not what the schemas of src/config give: run node scripts/json-schemas.ts`);
}

for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
