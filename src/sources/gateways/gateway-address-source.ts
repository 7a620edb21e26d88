/** Resolves gateways between networks that are known by a host name. Their last addresses stay while no name server answers. */
import type { Logger } from "#lib/log/log.ts";
import { errorText } from "#lib/mesh-error.ts";
import type { Source } from "#model/ports.ts";
import type { GatewayAddresses } from "#model/service/network-gateway.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { type Answer, WantedAnswers, type Wish } from "../wanted-answers.ts";

/** A source that takes the answers into its snapshots. */
export interface GatewayAddressTaker extends Pick<Source, "current" | "subscribe"> {
  takeGatewayAddresses(addresses: GatewayAddresses): void;
}

export interface GatewayAddressOptions {
  readonly taker: GatewayAddressTaker;
  readonly resolve: (name: string, signal: AbortSignal) => Promise<Answer<readonly string[]>>;
  readonly log: Logger;
  /** Pauses after failures; short ones in tests. */
  readonly retry?: { readonly initialMs: number; readonly maxMs: number };
}

const RETRY = { initialMs: 1_000, maxMs: 30_000 };

/** Addresses that are looked up as long as a gateway has the name. */
export type GatewayAddressSource = WantedAnswers<Wish, readonly string[]>;

export function gatewayAddressSource(options: GatewayAddressOptions): GatewayAddressSource {
  const { taker, resolve, log, retry = RETRY } = options;
  return new WantedAnswers<Wish, readonly string[]>({
    source: taker,
    wanted: namesOf,
    ask: ({ id }, signal) => resolve(id, signal),
    isSame: (before, now) => before.join() === now.join(),
    give: (addresses) => taker.takeGatewayAddresses(addresses),
    retry,
    onAnswer: ({ id }, isNew) => {
      if (isNew) log.info("addresses of a network gateway are looked up", { host: id });
    },
    onFailure: ({ id }, thrown, hasAddresses) => {
      const effect = hasAddresses ? "those of before stay" : "it is left out";
      log.warn(`addresses of a network gateway cannot be looked up: ${effect}`, {
        host: id,
        reason: errorText(thrown),
      });
    },
  });
}

function namesOf({ namedGateways }: Snapshot): readonly Wish[] {
  return [...new Set(namedGateways.map(({ address }) => address))].map((id) => ({ id }));
}
