/** What a proxy proves itself with: its token, and the root by which it knows the control plane. */
import { constants, type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { sleep } from "#lib/async/sleep.ts";
import { ignoring } from "../host/ignoring.ts";
import { writeAtomically } from "../host/write-files.ts";
import { PROXY_ID } from "../mesh/mesh.ts";
import type { MemberPlan } from "../plan/plan.ts";
import { TOKEN_REFRESH_MS, type TokenIssuer } from "./issuer.ts";

/** Writes the tokens of all members that have a proxy. */
export async function writeTokens(members: readonly MemberPlan[], issuer: TokenIssuer): Promise<void> {
  await Promise.all(
    members.map(async ({ member, proxy }) => {
      if (proxy === undefined) return;
      const text = await issuer.token(member.namespace, member.serviceAccount);
      await writeAtomically({ path: proxy.tokenFile, text, mode: 0o600, owner: PROXY_ID });
    }),
  );
}

/** Writes them again and again, long before they end, until the signal aborts. */
export async function refreshTokens(
  input: {
    readonly members: () => readonly MemberPlan[];
    readonly issuer: TokenIssuer;
    readonly onFailure: (error: unknown) => void;
  },
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(TOKEN_REFRESH_MS, signal);
    if (signal.aborted) return;
    await writeTokens(input.members(), input.issuer).catch(input.onFailure);
  }
}

const POLL_MS = 20;

/** The root certificate, as soon as the control plane has made it; undefined when the signal aborts before. */
export async function rootCertificate(caFolder: string, signal: AbortSignal): Promise<string | undefined> {
  const path = join(caFolder, "root-cert.pem");
  while (!signal.aborted) {
    const text = await ignoring(["ENOENT"], () => readPlainFile(path));
    if (text?.includes("END CERTIFICATE")) return text;
    await sleep(POLL_MS, signal);
  }
  return undefined;
}

export async function writeRootCertificate(members: readonly MemberPlan[], pem: string): Promise<void> {
  for (const { proxy } of members) {
    if (proxy !== undefined) await writeAtomically({ path: proxy.rootCertFile, text: pem, mode: 0o644, owner: 0 });
  }
}

/** Follows no link: the folder belongs to the control plane's account, and we are root. */
async function readPlainFile(path: string): Promise<string> {
  const file: FileHandle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}
