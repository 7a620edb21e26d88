/**
 * Where the lines of a log go. A line that cannot be written (a full disk, a reader that is gone) is lost, which stderr
 * is told once: whoever logs has other things to do, and must not fail for it.
 */
import { appendFileSync } from "node:fs";
import { errorText } from "../mesh-error.ts";

export type WriteLine = (line: string) => void;

/** Streams that were asked already for failures, which they tell later, and by an event that ends programs. */
const heard = new WeakSet<NodeJS.WritableStream>();

export function streamWriter(stream: NodeJS.WritableStream): WriteLine {
  if (!heard.has(stream)) {
    heard.add(stream);
    stream.on("error", stream === process.stderr ? () => undefined : tellOnce());
  }
  return (line) => void stream.write(line);
}

/** Throws when the file cannot be written now. */
export function fileWriter(path: string): WriteLine {
  appendFileSync(path, "");
  return sparing((line) => appendFileSync(path, line));
}

/** The same, for a writer that throws. */
export function sparing(write: WriteLine): WriteLine {
  const tell = tellOnce();
  return (line) => {
    try {
      write(line);
    } catch (thrown) {
      tell(thrown);
    }
  };
}

function tellOnce(): (thrown: unknown) => void {
  let told = false;
  return (thrown) => {
    if (told) return;
    told = true;
    streamWriter(process.stderr)(`log write error: ${errorText(thrown)}; lines are lost\n`);
  };
}
