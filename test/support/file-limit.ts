/**
 * Ends a test file that does not end by itself, because something that it opened is still open: it would keep all tests
 * waiting. Loaded into each file's process before it.
 */
import { writeSync } from "node:fs";

/** Many times what the slowest file takes. */
const MOST_MS = 10 * 60_000;

/** Not set where the files are started. */
if (process.env.NODE_TEST_CONTEXT !== undefined) setTimeout(giveUp, MOST_MS).unref();

function giveUp(): void {
  const open = process.getActiveResourcesInfo().join(", ");
  writeSync(process.stderr.fd, `${process.argv[1]} did not end within ${MOST_MS / 1000} s; still open: ${open}\n`);
  process.exit(1);
}
