import { MeshError } from "#lib/mesh-error.ts";

/** Sets of keys are a few kilobytes. */
const MAX_BYTES = 1_048_576;
const TIMEOUT_MS = 5_000;

/** Gets a small JSON document over HTTP; a redirect, a slow answer or a large one is an error. */
export async function fetchJson(url: string, fetchFn: typeof fetch = fetch): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetchFn(url, { redirect: "error", signal, headers: { accept: "application/json" } });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return JSON.parse(await readLimited(response));
  } catch (cause) {
    throw new MeshError("KEYS_UNAVAILABLE", `cannot get "${url}"`, { cause });
  }
}

async function readLimited(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > MAX_BYTES) throw new Error(`the answer has more than ${MAX_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
