/** Answers of applications that compress what they say without being asked to: it is joined with others as text. */
import { MeshError } from "#lib/mesh-error.ts";
import type { StreamedAnswer, Take } from "./streamed-answer.ts";

const GZIP: ReadonlySet<string> = new Set(["gzip", "x-gzip"]);

/** The answer as text. Throws where it is in an encoding that nobody here reads: it would spoil the whole. */
export function unpacked(answer: StreamedAnswer): StreamedAnswer {
  const encoding = (answer.headers["content-encoding"] ?? "").toLowerCase();
  if (encoding === "" || encoding === "identity") return answer;
  if (GZIP.has(encoding)) return { ...answer, read: (take) => readGzip(answer, take) };
  answer.destroy();
  throw new MeshError("HTTP_FAILED", `the answer is in the encoding "${encoding}"`);
}

async function readGzip(answer: StreamedAnswer, take: Take): Promise<void> {
  const { createGunzip } = await import("node:zlib");
  const gunzip = createGunzip();
  const write = (parts: readonly Buffer[]) =>
    new Promise<void>((resolve, reject) => {
      gunzip.write(Buffer.concat(parts), (error) => (error ? reject(error) : resolve()));
    });
  answer.read(write).then(
    () => gunzip.end(),
    (reason) => gunzip.destroy(reason),
  );
  for await (const part of gunzip) await take([part]);
}
