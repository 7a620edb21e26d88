/**
 * A call from inside a workload. A short program in there makes it, so that name, route, identity and policy are those of
 * the workload; what it says travels over its pipes: a line of JSON, then the bytes of the body, in both directions.
 */
import { text } from "node:stream/consumers";
import { MeshError } from "#lib/mesh-error.ts";
import type { FetchOptions } from "./api.ts";
import type { Program } from "./program.ts";

const CALL = `
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const input = Buffer.concat(chunks);
const end = input.indexOf(10);
const { url, hasBody, ...init } = JSON.parse(input.subarray(0, end));
const say = (head) => process.stdout.write(JSON.stringify(head) + "\\n");
const words = (error) => [error.message, error.cause && words(error.cause)].filter(Boolean).join(": ");
try {
  const answer = await fetch(url, hasBody ? { ...init, body: input.subarray(end + 1) } : init);
  say({ status: answer.status, statusText: answer.statusText, headers: [...answer.headers] });
  for await (const chunk of answer.body ?? []) process.stdout.write(chunk);
} catch (error) {
  say({ error: words(error) });
}`;

/** The command that makes a call, as told by its input. */
export const CALL_COMMAND: readonly string[] = ["node", "--input-type=module", "-e", CALL];

type Head =
  | { readonly status: number; readonly statusText: string; readonly headers: [string, string][] }
  | { readonly error: string };

/** Makes the call by a program that was started with `CALL_COMMAND`. */
export async function fetchBy(program: Program, url: string, init: FetchOptions): Promise<Response> {
  const { child } = program;
  const { signal, body, ...rest } = init;
  child.stdin.write(`${JSON.stringify({ url, hasBody: body !== undefined, ...rest })}\n`);
  child.stdin.end(body);
  const words = text(child.stderr);
  const answer = framesOf(program, signal);
  const first = (await answer.next()).value;
  if (first === undefined) {
    throw failed(url, (await words).trim() || "the workload does not answer");
  }
  const head: Head = JSON.parse(first.toString());
  if ("error" in head) throw failed(url, head.error);
  const { status, statusText, headers } = head;
  if (HAS_NO_BODY.includes(status)) return new Response(null, { status, statusText, headers });
  return new Response(ReadableStream.from(answer), { status, statusText, headers });
}

const HAS_NO_BODY: readonly number[] = [204, 205, 304];

/** The first line, and then whatever follows it as it comes. Who stops reading early ends the program. */
async function* framesOf(program: Program, signal: AbortSignal | undefined): AsyncGenerator<Buffer> {
  try {
    yield* framesIn(program.child.stdout);
    await program.ended;
    signal?.throwIfAborted();
  } finally {
    program.child.kill("SIGKILL");
  }
}

async function* framesIn(stdout: Program["child"]["stdout"]): AsyncGenerator<Buffer> {
  let head = Buffer.alloc(0);
  let seen = false;
  for await (const chunk of stdout as AsyncIterable<Buffer>) {
    if (seen) {
      yield chunk;
      continue;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf(10);
    if (end < 0) continue;
    seen = true;
    yield head.subarray(0, end);
    if (end + 1 < head.length) yield head.subarray(end + 1);
  }
}

function failed(url: string, why: string): MeshError {
  return new MeshError("FETCH_FAILED", `Cannot fetch "${url}": ${why}`);
}
