/** Text of Prometheus' format as it streams by: cut into whole lines, with Istio's names as dashboards know them. */
import { MeshError } from "#lib/mesh-error.ts";

const LINE_FEED = 10;
/** More than any sample, and little enough to hold. */
const MAX_LINE_BYTES = 1024 * 1024;
const DROPPED = Buffer.from("envoy_");
const PREFIXED = Buffer.from("envoy_istio_");
const COMMENTS = ["# TYPE ", "# HELP "];

/**
 * Pieces that each end with a line, so that whatever breaks off leaves no half of one behind. A last line without an end
 * gets one. Throws when a line does not end at all.
 */
export async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let rest: Buffer[] = [];
  let restBytes = 0;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      yield rest.length === 0 ? chunk.subarray(0, end) : Buffer.concat([...rest, chunk.subarray(0, end)]);
      rest = [];
      restBytes = 0;
    }
    if (end === chunk.length) continue;
    rest.push(chunk.subarray(end));
    restBytes += chunk.length - end;
    if (restBytes > MAX_LINE_BYTES)
      throw new MeshError("HTTP_FAILED", `a line of the metrics has more than ${MAX_LINE_BYTES} bytes`);
  }
  if (restBytes > 0) yield Buffer.concat([...rest, Buffer.of(LINE_FEED)]);
}

/**
 * Upstream Envoy puts `envoy_` before every name, Istio's does not do so with Istio's own: dashboards look for
 * `istio_requests_total`.
 */
export function istioNames(lines: Buffer): Buffer {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = lines.indexOf(PREFIXED); at >= 0; at = lines.indexOf(PREFIXED, at + PREFIXED.length)) {
    if (!beginsName(lines, at)) continue;
    parts.push(lines.subarray(from, at));
    from = at + DROPPED.length;
  }
  return parts.length === 0 ? lines : Buffer.concat([...parts, lines.subarray(from)]);
}

function beginsName(lines: Buffer, at: number): boolean {
  if (at === 0 || lines[at - 1] === LINE_FEED) return true;
  return COMMENTS.some((comment) => {
    const start = at - comment.length;
    return (
      start >= 0 && lines.toString("latin1", start, at) === comment && (start === 0 || lines[start - 1] === LINE_FEED)
    );
  });
}
