export interface SignRequest {
  /** PEM. */
  readonly csr: string;
  readonly ttlSeconds: number;
}

/** What a CA gives. All PEM. */
export interface Signed {
  /** Leaf first, root last; the last entry may hold several roots. */
  readonly chain: readonly string[];
  /** Whom to trust, where the CA tells it apart from the chain; with none it is the chain's last. */
  readonly roots?: readonly string[];
}

/** Signs a request. Rejects when the signal is aborted. */
export type Sign = (request: SignRequest, signal: AbortSignal) => Promise<Signed>;
