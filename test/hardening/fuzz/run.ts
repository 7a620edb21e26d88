/**
 * `make fuzz`: fuzzes every target, or the one that TARGET names, for DURATION seconds each, and updates the corpus. Exits
 * with 1 after findings; each is kept in the corpus, so `make test` fails until it is fixed.
 *
 *   node test/hardening/fuzz/run.ts [--target NAME] [--duration SECONDS] [--seed NUMBER]
 */
import { fork } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { FOLDER, MAX_CORPUS_BYTES, readCorpus, targetNames, writeCorpus, writeRegression } from "./corpus.ts";
import type { FuzzAnswer, FuzzRequest } from "./fuzz-process.ts";

/** No run takes so long, on a busy machine either. */
const HANG_MS = 20_000;

const { values } = parseArgs({
  options: { target: { type: "string" }, duration: { type: "string" }, seed: { type: "string" } },
});
const names = values.target ? [values.target] : targetNames();
const unknown = names.find((name) => !targetNames().includes(name));
const durationMs = Number(values.duration || 60) * 1000;
const seed = Number(values.seed || Math.floor(Math.random() * 2 ** 31));
if (unknown !== undefined || !(durationMs > 0) || !Number.isInteger(seed)) {
  console.error(`usage: run.ts [--target ${targetNames().join("|")}] [--duration SECONDS] [--seed NUMBER]`);
  process.exit(2);
}

let findings = 0;
console.log(`seed ${seed}, ${durationMs / 1000} s for each of ${names.length} targets`);
for (const name of names) {
  const { runs, corpus, finding } = await fuzz(name);
  if (finding === undefined) writeCorpus(name, corpus);
  console.log(`${name}: ${runs} runs, ${corpus.length} inputs in the corpus${finding ? ", one FINDING" : ""}`);
  if (finding === undefined) continue;
  findings++;
  console.log(`  ${writeRegression(name, finding.input)}\n${finding.message.replace(/^/gm, "  ")}`);
}
process.exit(findings === 0 ? 0 : 1);

async function fuzz(name: string): Promise<FuzzAnswer> {
  const folder = mkdtempSync(join(tmpdir(), "fuzz-"));
  const progress = join(folder, "progress");
  const request: FuzzRequest = {
    file: join(FOLDER, `${name}.fuzz.ts`),
    corpus: [...readCorpus(name).values()],
    durationMs,
    seed,
    maxCorpusBytes: MAX_CORPUS_BYTES,
    progress,
  };
  const child = fork(join(FOLDER, "fuzz-process.ts"), {
    serialization: "advanced",
    execArgv: ["--max-old-space-size=512"],
  });
  const { promise, resolve } = Promise.withResolvers<FuzzAnswer>();
  const failed = (why: string) => {
    const { runs, input } = readProgress(progress);
    resolve({ runs, corpus: [], finding: { input, message: why } });
  };
  let runs = -1;
  const watch = setInterval(() => {
    const now = readProgress(progress).runs;
    if (now === runs) failed(`does not end within ${HANG_MS / 1000} s`);
    runs = now;
  }, HANG_MS);
  child.once("message", resolve);
  child.once("exit", (code, signal) => failed(`ends the process (${signal ?? code})`));
  child.send(request);
  const answer = await promise;
  clearInterval(watch);
  if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
  rmSync(folder, { recursive: true });
  return answer;
}

/** What `fuzz-process.ts` wrote last. */
function readProgress(file: string): { readonly runs: number; readonly input: Buffer } {
  const bytes = existsSync(file) ? readFileSync(file) : Buffer.alloc(0);
  if (bytes.length < 8) return { runs: 0, input: Buffer.alloc(0) };
  return { runs: bytes.readUInt32LE(0), input: bytes.subarray(8, 8 + bytes.readUInt32LE(4)) };
}
