/**
 * Limits what peers can occupy on one listener before the control plane knows that they are worth it.
 *
 * ```
 * accepted ──> stranger ── first valid message ──> introduced: occupies nothing here
 *                 │                                     │ its last stream ended: a stranger again
 *                 └── proved an identity ──> known: never a stranger again
 * ```
 *
 * Strangers share one budget of memory by address, known peers another one by identity, so that no number of strangers keeps
 * a known peer out. Both budgets are fair: when one is exhausted, the peer that holds the most loses its oldest connection,
 * stream or message (fair-share.ts). A newcomer is therefore admitted even while a flood lasts, and a flood of silent peers
 * never outgrows the budget.
 */
import { FairShare, type Share } from "./fair-share.ts";
import { peerName } from "./peer-name.ts";

export interface AdmissionLimits {
  /** Memory of connections, streams and incomplete messages of peers that have not introduced themselves. */
  readonly strangerBytes: number;
  /** The same of authenticated peers. */
  readonly knownBytes: number;
  /** How long a connection may take until its first message is complete, including the TLS handshake. */
  readonly introductionMs: number;
}

export type RefusalReason =
  | "no_room"
  | "timeout"
  | "handshake"
  | "unauthenticated"
  | "forbidden"
  | "invalid"
  | "pipelined";

/** What was refused to whom, and why. */
export interface PeerRefusal {
  readonly what: "connection" | "stream";
  readonly reason: RefusalReason;
  /** An address, or an identity if the peer proved one. */
  readonly peer: string;
}

export type OnRefused = (refusal: PeerRefusal) => void;

export interface AdmissionOptions {
  readonly limits?: Partial<AdmissionLimits>;
  /** Receives every refusal, to count and log it. */
  readonly onRefused?: OnRefused;
}

/** Two ports that are attacked at once stay within 50 MB. */
const DEFAULT_LIMITS: AdmissionLimits = {
  strangerBytes: 24 * 1024 * 1024,
  knownBytes: 16 * 1024 * 1024,
  introductionMs: 20_000,
};

/** Of a listener of the agent, which serves one workload and shares its memory. */
export const AGENT_LIMITS: Partial<AdmissionLimits> = { strangerBytes: 4 * 1024 * 1024 };

/** What parts of a connection occupy, measured on Node 24. */
export const CONNECTION_BYTES = { accepted: 4_600, http1: 12_000, http2: 24_000, tls: 80_000 } as const;
/** An HTTP/2 stream without its headers. */
export const STREAM_BYTES = 6_000;

export class Admission {
  readonly limits: AdmissionLimits;
  readonly strangers: FairShare;
  readonly known: FairShare;
  readonly refused: OnRefused;

  constructor({ limits, onRefused = () => undefined }: AdmissionOptions = {}) {
    this.limits = { ...DEFAULT_LIMITS, ...limits };
    this.strangers = new FairShare(this.limits.strangerBytes);
    this.known = new FairShare(this.limits.knownBytes);
    this.refused = onRefused;
  }

  /** Admits a connection; `cut` is called when it has to go. */
  connection(address: string | undefined, cut: () => void): AdmittedConnection {
    return new AdmittedConnection(this, peerName(address), cut);
  }
}

/** A connection and its place. */
export class AdmittedConnection {
  readonly #admission: Admission;
  readonly #cut: () => void;
  readonly #peer: string;
  #bytes: number = CONNECTION_BYTES.accepted;
  #identity: string | undefined;
  #share: Share | undefined;
  #introducedStreams = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(admission: Admission, peer: string, cut: () => void) {
    this.#admission = admission;
    this.#peer = peer;
    this.#cut = cut;
    this.#occupy();
    if (!this.#isClosed)
      this.#timer = setTimeout(() => this.refuse("timeout"), admission.limits.introductionMs).unref();
  }

  /** An address, or the identity that was proved on it. */
  get peer(): string {
    return this.#identity ?? this.#peer;
  }

  /** Sets what the connection occupies from now on. */
  resize(bytes: number): void {
    this.#bytes = bytes;
    this.#share?.resize(bytes);
  }

  /** Admits a stream; `cut` is called when it has to go. */
  stream(cut: () => void): AdmittedStream {
    return new AdmittedStream(this.#admission, this, cut);
  }

  /** A peer of this identity uses the connection. */
  authenticated(identity: string): void {
    this.#identity ??= identity;
    this.#leaveStrangers();
  }

  /** It is in use: of its peer's connections, it is the last to give way. */
  renew(): void {
    this.#leaveStrangers();
    if (this.#identity === undefined) this.#occupy();
  }

  /** One more stream has introduced itself. */
  introduced(): void {
    this.#introducedStreams++;
    this.#leaveStrangers();
  }

  /** A stream that had introduced itself ended. */
  left(): void {
    this.#introducedStreams--;
    if (this.#introducedStreams === 0 && this.#identity === undefined) this.#occupy();
  }

  /** Cuts the connection and counts that. */
  refuse(reason: RefusalReason): void {
    if (this.#isClosed) return;
    this.close();
    this.#admission.refused({ what: "connection", reason, peer: this.peer });
    this.#cut();
  }

  close(): void {
    this.#isClosed = true;
    this.#leaveStrangers();
  }

  #occupy(): void {
    if (this.#isClosed || this.#share !== undefined) return;
    const share = this.#admission.strangers.take(this.#peer, this.#bytes, () => this.refuse("no_room"));
    // Without any room it was refused within that call.
    if (!this.#isClosed) this.#share = share;
  }

  #leaveStrangers(): void {
    clearTimeout(this.#timer);
    this.#share?.giveBack();
    this.#share = undefined;
  }
}

/** A stream and its place. */
export class AdmittedStream {
  readonly #admission: Admission;
  readonly #connection: AdmittedConnection;
  readonly #cut: () => void;
  #peer: string;
  #pool: FairShare;
  #bytes = 0;
  #waiting: Share | undefined;
  #message: Share | undefined;
  #isIntroduced = false;
  #isClosed = false;

  constructor(admission: Admission, connection: AdmittedConnection, cut: () => void) {
    this.#admission = admission;
    this.#connection = connection;
    this.#cut = cut;
    this.#peer = connection.peer;
    this.#pool = admission.strangers;
  }

  /** Occupies so much until its caller introduces itself. */
  waits(bytes: number): void {
    this.#bytes = bytes;
    this.#occupy();
  }

  /** The caller proved this identity. */
  authenticated(identity: string): void {
    if (this.#isClosed) return;
    const wasWaiting = this.#waiting !== undefined;
    this.#giveBack();
    this.#peer = identity;
    this.#pool = this.#admission.known;
    this.#connection.authenticated(identity);
    if (wasWaiting) this.#occupy();
  }

  /** The first message was valid; called again, it is a no-op. */
  introduced(): void {
    if (this.#isClosed || this.#isIntroduced) return;
    this.#isIntroduced = true;
    this.#giveBack();
    this.#connection.introduced();
  }

  /** So much of an incomplete message is kept; 0 when it is complete. */
  buffers(bytes: number): void {
    if (this.#message !== undefined && bytes > 0) this.#message.resize(bytes);
    else if (this.#message !== undefined) this.#endMessage();
    else if (bytes > 0 && !this.#isClosed) {
      const share = this.#pool.take(this.#peer, bytes, () => this.refuse("no_room"));
      if (!this.#isClosed) this.#message = share;
    }
  }

  /** Cuts the stream and counts that. */
  refuse(reason: RefusalReason): void {
    if (this.#isClosed) return;
    this.counted(reason);
    this.close();
    this.#cut();
  }

  /** Counts a refusal that the caller carries out. */
  counted(reason: RefusalReason): void {
    this.#admission.refused({ what: "stream", reason, peer: this.#peer });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#giveBack();
    this.#endMessage();
    if (this.#isIntroduced) this.#connection.left();
  }

  #occupy(): void {
    const share = this.#pool.take(this.#peer, this.#bytes, () => this.refuse("no_room"));
    if (!this.#isClosed) this.#waiting = share;
  }

  #giveBack(): void {
    this.#waiting?.giveBack();
    this.#waiting = undefined;
  }

  #endMessage(): void {
    this.#message?.giveBack();
    this.#message = undefined;
  }
}
