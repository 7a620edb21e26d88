/** Closes a test run with failures in full, what was skipped and why, and a line of counts. Skipped fails under CI. */
import { writeFileSync } from "node:fs";
import type { TestEvent } from "node:test/reporters";

interface Finished {
  readonly name: string;
  readonly file: string;
  readonly reason: string;
}

/** The end of what a file wrote to stderr that is shown when it failed as a whole. */
const MOST_SAID = 2_000;

export default async function* summary(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const failed: Finished[] = [];
  const skipped: Finished[] = [];
  /** By file, as it was given: what it wrote to stderr. */
  const said = new Map<string, string>();
  let passed = 0;
  for await (const event of source) {
    if (event.type === "test:stderr") {
      const { file, message } = event.data;
      said.set(file, `${said.get(file) ?? ""}${message}`.slice(-MOST_SAID));
    }
    if (event.type !== "test:pass" && event.type !== "test:fail") continue;
    const { name, file, skip } = event.data;
    // A suite is told by its tests, unless it was skipped with all of them.
    if (event.data.details?.type === "suite" && (skip === undefined || skip === false)) continue;
    if (skip !== undefined && skip !== false) {
      skipped.push({ name, file: file ?? "", reason: typeof skip === "string" ? skip : "no reason given" });
    } else if (event.type === "test:pass") {
      passed++;
    } else {
      const error = event.data.details.error;
      const cause =
        error.cause instanceof Error
          ? (error.cause.stack ?? error.cause.message)
          : String(error.cause ?? error.message);
      // A file that ended otherwise than by its tests fails under its own name, and nothing else is known of it.
      failed.push({ name, file: file ?? "", reason: [cause, said.get(name)].filter(Boolean).join("\n") });
    }
  }
  yield "\n";
  for (const { name, file, reason } of failed) yield `\nFAILED ${name}\n  ${file}\n${reason.replace(/^/gm, "    ")}\n`;
  for (const { name, file, reason } of skipped) yield `SKIPPED ${name} (${file}): ${reason}\n`;
  // Who tries failed files again must not lose sight of what was skipped: then there is nothing to try.
  const list = process.env.FAILED_FILES;
  if (list !== undefined)
    writeFileSync(
      list,
      skipped.length > 0 && process.env.CI === "true" ? "" : [...new Set(failed.map(({ file }) => file))].join("\n"),
    );
  yield `\n${passed} passed, ${failed.length} failed, ${skipped.length} skipped\n`;
  if (skipped.length > 0 && process.env.CI === "true") {
    yield "skipped tests fail under CI=true\n";
    process.exitCode = 1;
  }
}
