/**
 * Keys of token issuers that are kept somewhere else. Translation never waits for them: the snapshot tells which are
 * wanted, a source gets them, and until then, or when that fails, no token of that issuer is good.
 */
export interface KeySetAddress {
  /** The URL that is asked first; no two addresses have the same. */
  readonly id: string;
  /** Whether that URL tells where the keys are (OpenID discovery), or gives the keys themselves. */
  readonly discovers: boolean;
  /** How long to wait for an answer. */
  readonly timeoutMs: number;
}

/** Key sets in JSON, by the id of their address; only those that were got. */
export type KeySets = ReadonlyMap<string, string>;
