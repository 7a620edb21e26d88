/**
 * Requires a growth test for every place where the sources listen. A file that opens a socket is the source of an entry point in
 * `test/hardening/entry-points.ts`, or is listed there with the reason why strangers cannot send anything to it.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ENTRY_POINTS, NOT_ENTRY_POINTS } from "../test/hardening/entry-points.ts";

const OPENS =
  /\.listen\(|\b(?:createSocket|createServer|createSecureServer|createHttpServer|listenOn|serveUnix|fastify)\(|new (?:Grpc|Http|Webhook)Listener\(/;
const COMMENTS = /\/\*[\s\S]*?\*\/|\/\/.*/g;

const root = join(import.meta.dirname, "..");
const problems: string[] = [];
const sources = new Set(ENTRY_POINTS.map(({ source }) => source));

for (const path of globSync("src/**/*.ts", { cwd: root }).sort()) {
  if (/^src\/gen\/|\.test\.ts$|-fixture\.ts$/.test(path)) continue;
  if (sources.has(path) || path in NOT_ENTRY_POINTS) continue;
  const line = readFileSync(join(root, path), "utf8").replace(COMMENTS, "").match(OPENS)?.[0];
  if (line === undefined) continue;
  problems.push(
    `${path} opens a socket ("${line}"): add it to test/hardening/entry-points.ts, with a growth test in test/hardening/growth`,
  );
}
for (const file of [...sources, ...Object.keys(NOT_ENTRY_POINTS)]) {
  if (!existsSync(join(root, file))) problems.push(`test/hardening/entry-points.ts: ${file} does not exist`);
}
for (const { name, test, cases } of ENTRY_POINTS) {
  const file = join(root, "test/hardening/growth", test);
  if (!existsSync(file)) problems.push(`entry point ${name}: ${test} does not exist`);
  else if (!readFileSync(file, "utf8").includes(cases))
    problems.push(`entry point ${name}: ${test} does not mention ${cases}`);
}

for (const problem of problems) console.error(problem);
process.exit(problems.length === 0 ? 0 : 1);
