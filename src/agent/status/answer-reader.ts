/**
 * Reads an answer of HTTP/1.1 from the bytes of a connection, however they are cut. Pure: whoever owns the connection
 * feeds it.
 *
 *   status -> headers -> body (a length, or until the connection ends)                              -> end
 *                     -> size -> data -> dataEnd -> size ... -> trailers (transfer-encoding chunked) -> end
 */
import { MeshError } from "#lib/mesh-error.ts";

export interface AnswerHead {
  readonly status: number;
  /** By lower-case name; the first of several values. */
  readonly headers: Readonly<Record<string, string>>;
}

type State = "status" | "headers" | "size" | "data" | "dataEnd" | "trailers" | "body" | "end";

/** More than any head or trailer, and little enough to hold. */
const MAX_TEXT_BYTES = 64 * 1024;
const LINE_FEED = 10;
const NO_BODY = [204, 304];

export class AnswerReader {
  #state: State = "status";
  #head: { status: number; headers: Record<string, string> } = { status: 0, headers: {} };
  #line = "";
  /** Of text since the last body. */
  #textBytes = 0;
  /** Of the body, or of one chunk of it. */
  #bytesLeft = 0;

  /** Undefined until all of it was read. */
  get head(): AnswerHead | undefined {
    return this.#state === "status" || this.#state === "headers" ? undefined : this.#head;
  }

  get isComplete(): boolean {
    return this.#state === "end";
  }

  /** The parts of the body that are in the bytes. Throws when they are no answer. */
  read(bytes: Buffer): readonly Buffer[] {
    const parts: Buffer[] = [];
    let at = 0;
    while (at < bytes.length && this.#state !== "end") {
      if (this.#state === "body" || this.#state === "data") {
        const part = bytes.subarray(at, Math.min(bytes.length, at + this.#bytesLeft));
        parts.push(part);
        at += part.length;
        this.#bytesLeft -= part.length;
        if (this.#bytesLeft === 0) this.#state = this.#state === "body" ? "end" : "dataEnd";
      } else at = this.#readLine(bytes, at);
    }
    return parts;
  }

  /** The connection has ended. Throws unless the answer has, too. */
  close(): void {
    if (this.#state === "body" && this.#bytesLeft === Number.POSITIVE_INFINITY) this.#state = "end";
    if (this.#state !== "end") throw new MeshError("HTTP_FAILED", "the connection was closed before the answer ended");
  }

  #readLine(bytes: Buffer, at: number): number {
    const end = bytes.indexOf(LINE_FEED, at);
    const next = end < 0 ? bytes.length : end + 1;
    this.#textBytes += next - at;
    if (this.#textBytes > MAX_TEXT_BYTES) throw malformed(`more than ${MAX_TEXT_BYTES} bytes of headers`);
    this.#line += bytes.toString("latin1", at, next);
    if (end < 0) return next;
    const line = this.#line.replace(/\r?\n$/, "");
    this.#line = "";
    this.#state = this.#afterLine(line);
    return next;
  }

  #afterLine(line: string): State {
    switch (this.#state) {
      case "status":
        this.#head = { status: statusOf(line), headers: {} };
        return "headers";
      case "headers":
        if (line === "") return this.#afterHead();
        this.#addHeader(line);
        return "headers";
      case "size":
        this.#bytesLeft = chunkSize(line);
        this.#textBytes = 0;
        return this.#bytesLeft === 0 ? "trailers" : "data";
      case "dataEnd":
        if (line !== "") throw malformed("a chunk that is longer than it says");
        return "size";
      default:
        return line === "" ? "end" : "trailers";
    }
  }

  #addHeader(line: string): void {
    const colon = line.indexOf(":");
    if (colon < 1) throw malformed(`the header "${line}"`);
    this.#head.headers[line.slice(0, colon).toLowerCase()] ??= line.slice(colon + 1).trim();
  }

  #afterHead(): State {
    const { status, headers } = this.#head;
    this.#textBytes = 0;
    if (status < 200) return "status"; // another follows
    if (NO_BODY.includes(status)) return "end";
    if (/\bchunked\b/i.test(headers["transfer-encoding"] ?? "")) return "size";
    const length = headers["content-length"];
    if (length !== undefined && !/^\d+$/.test(length)) throw malformed(`the length "${length}"`);
    this.#bytesLeft = length === undefined ? Number.POSITIVE_INFINITY : Number(length);
    return this.#bytesLeft === 0 ? "end" : "body";
  }
}

function statusOf(line: string): number {
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(line)?.[1];
  if (status === undefined) throw malformed(`"${line.slice(0, 80)}" instead of a status`);
  return Number(status);
}

function chunkSize(line: string): number {
  const size = /^([0-9a-f]{1,12})\s*(?:;.*)?$/i.exec(line)?.[1];
  if (size === undefined) throw malformed(`"${line.slice(0, 80)}" instead of the size of a chunk`);
  return Number.parseInt(size, 16);
}

function malformed(what: string): MeshError {
  return new MeshError("HTTP_FAILED", `no answer of HTTP/1.1: ${what}`);
}
