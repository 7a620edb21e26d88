/** Gets the key sets of token issuers that the mesh wants. Those that were got once stay while their server is away. */
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { KeySetAddress, KeySets } from "#model/key-set.ts";
import type { Source } from "#model/ports.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { WantedAnswers } from "../wanted-answers.ts";
import { isSameKeySet } from "./same-keys.ts";

/** A source that takes the answers into its snapshots. */
export interface KeySetTaker extends Pick<Source, "current" | "subscribe"> {
  takeKeySets(keySets: KeySets): void;
}

/** Names of what is counted. */
export const KEY_SET_COUNTERS = {
  pilot_jwks_resolver_network_fetch_success_total: {
    type: "counter",
    help: "Key sets of token issuers that were fetched",
  },
  pilot_jwks_resolver_network_fetch_fail_total: {
    type: "counter",
    help: "Key sets of token issuers that could not be fetched",
  },
} as const;

export interface KeySetSourceOptions {
  readonly taker: KeySetTaker;
  readonly wanted: (snapshot: Snapshot) => readonly KeySetAddress[];
  readonly fetch: (address: KeySetAddress, signal: AbortSignal) => Promise<string>;
  /** PILOT_JWT_PUB_KEY_REFRESH_INTERVAL */
  readonly refreshMs: number;
  readonly log: Logger;
  readonly count?: (name: keyof typeof KEY_SET_COUNTERS) => void;
}

/** The first pause after a failure; pauses grow up to the longest, and are never longer than the usual interval. */
const RETRY_MS = { initialMs: 1_000, maxMs: 60_000 };

/** Key sets that are fetched as long as they are wanted. */
export type KeySetSource = WantedAnswers<KeySetAddress, string>;

export function keySetSource(options: KeySetSourceOptions): KeySetSource {
  const { taker, wanted, fetch, refreshMs, log, count } = options;
  return new WantedAnswers<KeySetAddress, string>({
    source: taker,
    wanted,
    ask: async (address, signal) => ({ value: await fetch(address, signal), holdsMs: refreshMs }),
    isSame: isSameKeySet,
    give: (keySets) => taker.takeKeySets(keySets),
    retry: { ...RETRY_MS, maxMs: Math.min(RETRY_MS.maxMs, refreshMs) },
    onAnswer: ({ id }, isNew) => {
      count?.("pilot_jwks_resolver_network_fetch_success_total");
      if (isNew) log.info("keys of a token issuer are fetched", { url: id });
    },
    onFailure: ({ id }, thrown, hasKeys) => {
      count?.("pilot_jwks_resolver_network_fetch_fail_total");
      const effect = hasKeys ? "those of before stay" : "all its tokens are refused";
      log.warn(`keys of a token issuer cannot be fetched: ${effect}`, { url: id, reason: errorText(thrown) });
    },
  });
}
