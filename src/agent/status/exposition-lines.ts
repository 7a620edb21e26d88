/** Text of Prometheus' format as it streams by: cut into whole lines, with Istio's names as dashboards know them. */
import { MeshError } from "#lib/mesh-error.ts";

const LINE_FEED = 10;
/** More than any sample, and little enough to hold. */
const MAX_LINE_BYTES = 1024 * 1024;
const DROPPED = Buffer.from("envoy_");
const PREFIXED = Buffer.from("envoy_istio_");
const COMMENTS = ["# TYPE ", "# HELP "];

/**
 * Cuts what comes into pieces of whole lines, so that whatever breaks off leaves no half of one behind. Only a line that
 * begins in one chunk and ends in another is copied; a chunk may change when the next one comes.
 */
export class LineCutter {
  #begun: Buffer[] = [];
  #begunBytes = 0;

  /** The lines that are complete now. Throws when one does not end at all. */
  cut(chunk: Buffer): readonly Buffer[] {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    const pieces: Buffer[] = [];
    let start = 0;
    if (end > 0 && this.#begunBytes > 0) {
      start = chunk.indexOf(LINE_FEED) + 1;
      pieces.push(Buffer.concat([...this.#begun, chunk.subarray(0, start)]));
      this.#begun = [];
      this.#begunBytes = 0;
    }
    if (end > start) pieces.push(chunk.subarray(start, end));
    if (end < chunk.length) this.#keep(chunk.subarray(end));
    return pieces;
  }

  /** The last line, with an end if it has none. */
  end(): readonly Buffer[] {
    return this.#begunBytes === 0 ? [] : [Buffer.concat([...this.#begun, Buffer.of(LINE_FEED)])];
  }

  #keep(begun: Buffer): void {
    this.#begun.push(Buffer.from(begun));
    this.#begunBytes += begun.length;
    if (this.#begunBytes > MAX_LINE_BYTES)
      throw new MeshError("HTTP_FAILED", `a line of the metrics has more than ${MAX_LINE_BYTES} bytes`);
  }
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
