import { readFileSync } from "node:fs";
import type { Logger } from "#lib/log/log.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { isHeaderValue } from "#lib/text/header-value.ts";
import type { IdentityConfig } from "../sds/identity-config.ts";

/** Gets the workload's token, anew each time since tokens rotate. Empty when there is none. */
export type FetchToken = () => Promise<string>;

export interface TokenSourceInput {
  readonly config: IdentityConfig;
  /** Where Kubernetes keeps the token, and where one that comes from elsewhere is put. */
  readonly file: string;
  readonly log: Logger;
  /** Ends what keeps the token fresh. */
  readonly signal: AbortSignal;
  /** What goes on until then. */
  readonly running: Promise<void>[];
}

const FILE_FETCHERS: readonly string[] = ["JWT", ""];
const MACHINE_FETCHER = "GoogleComputeEngine";

/** Throws when CREDENTIAL_FETCHER_TYPE names no source: that is told before Envoy is started. */
export function checkCredentialFetcher({ credentialFetcher }: Pick<IdentityConfig, "credentialFetcher">): void {
  if (FILE_FETCHERS.includes(credentialFetcher) || credentialFetcher === MACHINE_FETCHER) return;
  throw new MeshError(
    "IDENTITY_INVALID",
    `failed to create credential fetcher: invalid credential fetcher type ${credentialFetcher}: choose JWT or ${MACHINE_FETCHER}`,
  );
}

/** The source that CREDENTIAL_FETCHER_TYPE names. */
export async function tokenSource({ config, file, log, signal, running }: TokenSourceInput): Promise<FetchToken> {
  const { credentialFetcher, trustDomain, google } = config;
  tellPolicy(config.jwtPolicy, log);
  checkCredentialFetcher(config);
  log.info(`using credential fetcher of ${credentialFetcher} type in ${trustDomain} trust domain`);
  if (credentialFetcher !== MACHINE_FETCHER) return fileToken(file, log);
  const { GceToken } = await import("./gce-token.ts");
  const token = new GceToken({
    audience: trustDomain,
    file,
    metadataHost: google.metadataHost,
    log: log.scope("gcecred"),
  });
  running.push(token.run(signal));
  return () => token.fetch();
}

/** JWT_POLICY once chose between two kinds of tokens; one of them is left. */
function tellPolicy(policy: string, log: Logger): void {
  if (policy === "third-party-jwt") log.info("JWT policy is third-party-jwt");
  else if (policy === "first-party-jwt")
    log.warn("Using deprecated JWT policy 'first-party-jwt'; treating as 'third-party-jwt'");
  else log.info("Using existing certs");
}

/** A file that Kubernetes rotates. Without a token the server may still know the caller by other means. */
export function fileToken(file: string, log: Logger): FetchToken {
  const without = (problem: string) => {
    log.warn(`There is no service account token in ${file}: ${problem}`);
    return "";
  };
  return async () => {
    try {
      const token = readFileSync(file, "utf8").trim();
      if (token === "") return without("the file is empty");
      return isHeaderValue(token) ? token : without("it has characters that no header may have");
    } catch (thrown) {
      return without(errorText(thrown));
    }
  };
}
