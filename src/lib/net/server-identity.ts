/** What a TLS server shows its clients and which of theirs it believes. All PEM. */
export interface ServerIdentity {
  /** Leaf first. */
  readonly certificates: string;
  readonly key: string;
  /** Roots of client certificates. */
  readonly clientRoots: string;
}

/** An identity that is renewed while the server runs. */
export interface ServerIdentitySource {
  current(): ServerIdentity;
  /** Called after each renewal; returns the way to stop. */
  subscribe(listener: (identity: ServerIdentity) => void): () => void;
}
