/**
 * Whether every proxy knows of every endpoint. Members are ready a moment before the last of them has got around, and a
 * person who calls in that moment would take the mesh for broken.
 */
import { get } from "node:http";
import { text } from "node:stream/consumers";
import { sleep } from "#lib/async/sleep.ts";

/** What the control plane's debug pages say. */
export interface SyncPages {
  /** /debug/configz */
  readonly objects: string;
  /** /debug/settled */
  readonly settled: string;
  /** /debug/syncz */
  readonly proxies: string;
}

export interface SyncWanted {
  /** Addresses of registered members, and whatever else its objects must mention. */
  readonly mentioned: readonly string[];
  /** What none of its objects may mention any more. */
  readonly forgotten: readonly string[];
  /** Number of connected proxies. */
  readonly proxies: number;
}

/** Whether the control plane knows all that it should, and all proxies have acknowledged all that they were sent. */
export function isInSync(pages: SyncPages, { mentioned, forgotten, proxies }: SyncWanted): boolean {
  const isMentioned = (text: string) => pages.objects.includes(`"${text}"`);
  if (!mentioned.every(isMentioned) || forgotten.some(isMentioned)) return false;
  if (Object(JSON.parse(pages.settled)).settled !== true) return false;
  const connected: unknown = JSON.parse(pages.proxies);
  return Array.isArray(connected) && connected.length >= proxies && connected.every(hasAcknowledged);
}

/** Fields come in pairs: `cluster_sent` and `cluster_acked`. */
function hasAcknowledged(proxy: unknown): boolean {
  const fields = new Map(Object.entries(proxy ?? {}));
  return [...fields].every(([name, sent]) => {
    return !name.endsWith("_sent") || sent === fields.get(name.replace(/_sent$/, "_acked"));
  });
}

export interface SyncInput {
  readonly address: string;
  readonly port: number;
  /** Of an account in the control plane's namespace: others see only their own. */
  readonly token: string;
  readonly wanted: SyncWanted;
  /** After this it is not worth while to wait any longer. */
  readonly timeoutMs: number;
}

const POLL_MS = 25;
/** Names and endpoints follow one another: for so long nothing more may come. */
const QUIET_MS = 100;

/** Waits until all is in sync and stays so; false when that took too long. */
export async function untilInSync(input: SyncInput, signal: AbortSignal): Promise<boolean> {
  const deadline = Date.now() + input.timeoutMs;
  let since: number | undefined;
  while (!signal.aborted && Date.now() < deadline) {
    since = (await askForSync(input)) ? (since ?? Date.now()) : undefined;
    if (since !== undefined && Date.now() - since >= QUIET_MS) return true;
    await sleep(POLL_MS, signal);
  }
  return false;
}

async function askForSync(input: SyncInput): Promise<boolean> {
  try {
    // One after the other: what was known at the first was sent at the second, and answered at the third.
    const objects = await page(input, "configz");
    const settled = await page(input, "settled");
    const proxies = await page(input, "syncz");
    return isInSync({ objects, settled, proxies }, input.wanted);
  } catch {
    // The control plane may be between two lives: it is asked again.
    return false;
  }
}

function page({ address, port, token }: SyncInput, name: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    const options = { host: address, port, path: `/debug/${name}`, headers, agent: false, timeout: 2000 };
    get(options, (response) => text(response).then(resolve, reject))
      .once("timeout", () => reject(new Error("no answer")))
      .once("error", reject);
  });
}
