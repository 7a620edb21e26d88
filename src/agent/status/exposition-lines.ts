/** Text of Prometheus' format as it streams by: cut into whole lines, with Istio's names as dashboards know them. */
import { MeshError } from "#lib/mesh-error.ts";

const LINE_FEED = 10;
/** More than any sample, and little enough to hold. */
const MAX_LINE_BYTES = 1024 * 1024;
const DROPPED = Buffer.from("envoy_");
const PREFIXED = Buffer.from("envoy_istio_");
const COMMENTS = ["# TYPE ", "# HELP "];

/**
 * Pieces of whole lines, so that whatever breaks off leaves no half of one behind. Only a line that begins in one piece and
 * ends in another is copied. A last line without an end gets one. Throws when a line does not end at all.
 */
export async function* wholeLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let begun: Buffer[] = [];
  let begunBytes = 0;
  for await (const chunk of chunks) {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    let start = 0;
    if (end > 0 && begunBytes > 0) {
      start = chunk.indexOf(LINE_FEED) + 1;
      yield Buffer.concat([...begun, chunk.subarray(0, start)]);
      begun = [];
      begunBytes = 0;
    }
    if (end > start) yield chunk.subarray(start, end);
    if (end === chunk.length) continue;
    begun.push(chunk.subarray(end));
    begunBytes += chunk.length - end;
    if (begunBytes > MAX_LINE_BYTES)
      throw new MeshError("HTTP_FAILED", `a line of the metrics has more than ${MAX_LINE_BYTES} bytes`);
  }
  if (begunBytes > 0) yield Buffer.concat([...begun, Buffer.of(LINE_FEED)]);
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
